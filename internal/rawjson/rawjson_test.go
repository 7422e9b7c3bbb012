package rawjson_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

func FuzzQuote(f *testing.F) {
	f.Add("plain")
	for _, s := range []string{`\n\t\b\f\r\\ \" \u001b \u0000`, `\/`, `\u000a`, `\u001B`, `\u00e9`, `\ud83d\ude00`, `\u0020`, `\u007f`} {
		f.Add(s)
	}
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
		if !rawjson.IsQuoted(quoted) {
			t.Fatalf("%q is not seen to be quoted", quoted)
		}
		if raw := `"` + s + `"`; rawjson.Valid(raw) && utf8.ValidString(raw) { // s as JSON that anybody wrote
			var back string
			if err := json.Unmarshal([]byte(raw), &back); err == nil && rawjson.IsQuoted(raw) != (rawjson.Quote(back) == raw) {
				t.Fatalf("%s: seen to be quoted: %t", raw, rawjson.IsQuoted(raw))
			}
		}
	})
}

// What is set stands in its place or at the end; everything else keeps its bytes.
func TestDocument(t *testing.T) {
	const doc = " { \"a\" : 1 ,\n \"list\":[ 1,{ } ] , \"b\":{\"c\": 2}}\n"
	for _, c := range []struct {
		name, doc string
		set       func(d *rawjson.Document)
		want      string
	}{
		{"nothing", doc, func(*rawjson.Document) {}, doc},
		{"a value", doc, func(d *rawjson.Document) { d.Set("a", "7") }, strings.Replace(doc, "1 ,", "7 ,", 1)},
		{"a new one", doc, func(d *rawjson.Document) { d.Set("n", "7") }, strings.Replace(doc, "}}", `},"n":7}`, 1)},
		{"the first goes", doc, func(d *rawjson.Document) { d.Set("a", "") }, strings.Replace(doc, " \"a\" : 1 ,\n ", "", 1)},
		{"the second goes", doc, func(d *rawjson.Document) { d.Set("list", "") }, strings.Replace(doc, ",\n \"list\":[ 1,{ } ] ", "", 1)},
		{"the last goes", doc, func(d *rawjson.Document) { d.Set("b", "") }, strings.Replace(doc, ` , "b":{"c": 2}`, "", 1)},
		{"all go", doc, func(d *rawjson.Document) { d.Set("a", ""); d.Set("b", ""); d.Set("list", "") }, " {}\n"},
		{"what is not there goes", doc, func(d *rawjson.Document) { d.Set("n", "") }, doc},
		{"the same list", doc, func(d *rawjson.Document) { d.SetArray("list", []string{"1", "{ }"}) }, doc},
		{"another list", doc, func(d *rawjson.Document) { d.SetArray("list", []string{"{ }"}) }, strings.Replace(doc, "[ 1,{ } ]", "[{ }]", 1)},
		{"an empty list", "{}", func(d *rawjson.Document) { d.SetArray("list", nil) }, `{"list":[]}`},
		{"a name that stands twice", `{"a":1,"b":2,"a":3}`, func(d *rawjson.Document) { d.Set("a", "4") }, `{"b":2,"a":4}`},
	} {
		d, ok := rawjson.Open(c.doc, nil)
		if !ok {
			t.Fatal(c.doc)
		}
		if c.set(d); string(d.Bytes()) != c.want {
			t.Errorf("%s: got %s, want %s", c.name, d.Bytes(), c.want)
		}
	}
}

// FuzzDocument: any object comes back as it was, or with the one member that was set
// as the standard library sees it.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":{"a":[{}]},"b":"\\\"","a" : -1e5 }`, `{"b":1, "c":{}}`, `[]`, `{"\u0061":{}}`, ` {} `} {
		f.Add(s, "7")
		f.Add(s, "")
	}
	f.Fuzz(func(t *testing.T, doc, value string) {
		var want, got map[string]any
		if !rawjson.Valid(doc) || value != "" && !rawjson.Valid(value) || json.Unmarshal([]byte(doc), &want) != nil || want == nil {
			return
		}
		d, ok := rawjson.Open(doc, nil)
		if !ok || string(d.Bytes()) != doc {
			t.Fatalf("%s does not come back", doc)
		}
		var v any
		delete(want, "a")
		if value != "" && json.Unmarshal([]byte(value), &v) == nil {
			want["a"] = v
		} else if value != "" {
			return
		}
		d.Set("a", value)
		if err := json.Unmarshal(d.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v (%v)", d.Bytes(), got, want, err)
		}
	})
}

func TestAsObject(t *testing.T) {
	for text, want := range map[string]string{
		"": "{}", " \n": "{}", ` {"a":1} `: `{"a":1}`, `[1]`: `{"input":[1]}`, `7 `: `{"input":7}`, `{"a":`: `{"input":"{\"a\":"}`, "ls -l": `{"input":"ls -l"}`,
	} {
		if got := rawjson.AsObject(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// FuzzFields: the members are those that gjson finds.
func FuzzFields(f *testing.F) {
	for _, doc := range []string{`{}`, ` { "a" : 1 , "b\\n" : "x\\u00e9\\"" , "c":{"d":[1,"]}",{}]},"e":true,"f":null,"g":-1.5e3} `, `{"a":"b","a":2}`, `{"a"`, `[1]`, `"a"`, `{"a":}`, `{"a":1 2}`} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		var want rawjson.Fields
		v := gjson.Parse(doc)
		v.Index = 7
		v.ForEach(func(key, value gjson.Result) bool {
			want = append(want, rawjson.Field{Name: key.Str, Value: value})
			return true
		})
		if got := rawjson.FieldsOf(v, nil); rawjson.Valid(doc) && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", doc, got, want)
		}
	})
}
