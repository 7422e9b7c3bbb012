package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

func FuzzQuote(f *testing.F) {
	f.Add("plain")
	f.Add("tab\t quote\" slash\\ nul\x00 <html> 漢字 \xff")
	f.Fuzz(func(t *testing.T, s string) {
		quoted := rawjson.Quote(s)
		var back string
		if err := json.Unmarshal([]byte(quoted), &back); err != nil {
			t.Fatal(err)
		}
		// Going over runes makes one U+FFFD of each byte that is no UTF-8.
		if want := string([]rune(s)); back != want {
			t.Fatalf("%q came back as %q, want %q", s, back, want)
		}
		if err := rawjson.Check(quoted); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMember(t *testing.T) {
	for _, c := range []struct{ doc, name, want string }{
		{`{}`, "a", ""},
		{` { "a" : 1 } `, "a", "1"},
		{`{"a":1}`, "a", "1"},
		{`{"a":null,"b":true}`, "b", "true"},
		{`{"a":{"b":[1,"]}"]},"b":2}`, "b", "2"},
		{`{"a":"x\\","b":"y\"}"}`, "b", `"y\"}"`},
		{`{"a":1,"a":[2]}`, "a", "[2]"},
		{`{"\u0061":7}`, "a", "7"},
		{`{"a":"b"}`, "b", ""},
		{`[1]`, "a", ""},
		{``, "a", ""},
	} {
		from, to, ok := rawjson.Member(c.doc, c.name)
		if got := c.doc[from:to]; got != c.want || ok != (c.want != "") {
			t.Errorf("%s of %s is %q, %t, want %q", c.name, c.doc, got, ok, c.want)
		}
	}
}

// FuzzMember: in any valid object it finds what the standard library finds, and
// anything else does not make it panic.
func FuzzMember(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":{"a":[{}]},"b":"\\\"","a" : -1e5 }`, `{"a":"`, `{"a"`, `{"a":[}`, `{"\u0061":{}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		from, to, ok := rawjson.Member(doc, "a")
		var members map[string]json.RawMessage
		if !rawjson.Valid(doc) || json.Unmarshal([]byte(doc), &members) != nil || members == nil {
			return
		}
		want, there := members["a"]
		if ok != there || doc[from:to] != string(want) {
			t.Errorf("a is %q (%t), want %q (%t)", doc[from:to], ok, want, there)
		}
	})
}
