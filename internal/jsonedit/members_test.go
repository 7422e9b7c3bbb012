package jsonedit

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// TestMembers: a member is added where a person would write it, and taking it out again leaves the
// document as it was.
func TestMembers(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		path      []string
		want      string
	}{
		{"an empty object", "{}\n", []string{"a"}, "{\n  \"a\": 1\n}\n"},
		{"on one line", `{"b":[1,{"c":2}]}`, []string{"a"}, `{"b":[1,{"c":2}], "a": 1}`},
		{"over lines", "{\n\t\"b\": \"}//\"\n}", []string{"a"}, "{\n\t\"b\": \"}//\",\n\t\"a\": 1\n}"},
		{"a trailing comma", "{\n  \"b\": 2,\n}", []string{"a"}, "{\n  \"b\": 2,\n  \"a\": 1,\n}"},
		{"comments", "{ // {\n  \"b\": /* , */ 2 // }\n  /* \"a\": 3 */\n}", []string{"a"}, "{ // {\n  \"b\": /* , */ 2, // }\n  /* \"a\": 3 */\n  \"a\": 1\n}"},
		{"missing objects", "{\n  \"b\": 2\n}", []string{"x", "a"}, "{\n  \"b\": 2,\n  \"x\": {\n    \"a\": 1\n  }\n}"},
		{"an empty object in it", "{\n  \"x\": {}\n}", []string{"x", "a"}, "{\n  \"x\": {\n    \"a\": 1\n  }\n}"},
		{"a name with dots", "{\"x.y\":{\"b\":2}}", []string{"x.y", "a"}, `{"x.y":{"b":2, "a": 1}}`},
		{"a mark at the beginning", "\ufeff{\"b\":2}", []string{"a"}, "\ufeff{\"b\":2, \"a\": 1}"},
	} {
		got, err := SetMember(tt.doc, "1", tt.path...)
		if err != nil || got != tt.want {
			t.Errorf("%s: %v: got %q, want %q", tt.name, err, got, tt.want)
			continue
		}
		_, names, _ := Member(tt.doc, tt.path...)
		if value, _, err := Member(got, tt.path...); err != nil || value != "1" {
			t.Errorf("%s: %v: it reads %q", tt.name, err, value)
		}
		if back, err := RemoveMember(got, names, tt.path...); err != nil || back != tt.doc {
			t.Errorf("%s: %v: taken out again it is %q", tt.name, err, back)
		}
		if again, err := SetMember(got, "2", tt.path...); err != nil || again != strings.Replace(tt.want, "\"a\": 1", "\"a\": 2", 1) {
			t.Errorf("%s: %v: replaced it is %q", tt.name, err, again)
		}
	}
	if got, err := SetMember(" \n", "1", "a"); err != nil || got != "{\n  \"a\": 1\n}\n" {
		t.Errorf("a blank document: %v, %q", err, got)
	}
	if got, err := RemoveMember(`{"x":{"a":1},"b":2}`, 0, "x", "a"); err != nil || got != `{"b":2}` {
		t.Errorf("an object that becomes empty: %v, %q", err, got)
	}
	if got, err := RemoveMember("{\"x\": {\n  // ours\n  \"a\": 1, \"b\": 2\n}}", 0, "x", "a"); err != nil || got != "{\"x\": {\n  // ours\n   \"b\": 2\n}}" {
		t.Errorf("before others on a line below a comment: %v, %q", err, got)
	}
	for _, doc := range []string{"[]", "{", `{"a"}`, `{"a":}`, `{"a":1 "b":2}`, "{'a':1}", `{} x`, `{"x":1}`, `{"b":/* }`, `{"b":"`, strings.Repeat(`{"x":`, 1<<20)} {
		_, err := SetMember(doc, "1", "x", "a")
		_, _, read := Member(doc, "x", "a")
		_, removed := RemoveMember(doc, 0, "x", "a")
		if !errors.Is(err, ErrShape) || !errors.Is(read, ErrShape) || !errors.Is(removed, ErrShape) {
			t.Errorf("%.20q: %v, %v, %v", doc, err, read, removed)
		}
	}
}

// TestMembersOfAnything: of whatever text, a member is added to what is an object and nothing else is
// changed, or an error says that it is none.
func TestMembersOfAnything(t *testing.T) {
	pieces := []string{"{", "}", "[", "]", ":", ",", `"a"`, `"b"`, `"x"`, `"\""`, "1", "null", " ", "\n", "\t", "//\n", "// , }\n", "/*", "*/", "/* { */", `"//"`, `{"a":1}`, `"x":{`, "\\", "\ufeff", "\r\n"}
	r := rand.New(rand.NewPCG(1, 2))
	set := 0
	for range 200_000 {
		var b strings.Builder
		b.WriteString("{")
		for range r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		if r.IntN(8) > 0 {
			b.WriteString("}")
		}
		doc := b.String()
		path := [][]string{{"new"}, {"a"}, {"x", "new"}}[r.IntN(3)]
		_, names, failed := Member(doc, path...)
		got, err := SetMember(doc, `[true]`, path...)
		if (err != nil) != (failed != nil) || err != nil && !errors.Is(err, ErrShape) {
			t.Fatalf("%q: %v, %v", doc, err, failed)
		}
		if err != nil {
			continue
		}
		set++
		if value, _, err := Member(got, path...); err != nil || strings.Join(strings.Fields(value), "") != `[true]` || !rawjson.Valid(blank(blank(got, true), false)) {
			t.Fatalf("%q: set it is %q: %v, %q", doc, got, err, value)
		}
		if names == len(path) {
			continue // it was there
		}
		back, err := RemoveMember(got, names, path...)
		if _, left, _ := Member(back, path...); err != nil || left > names || !rawjson.Valid(blank(blank(back, true), false)) {
			t.Fatalf("%q: taken out again it is %q: %v", doc, back, err)
		}
		if squeeze(back) != squeeze(doc) {
			t.Fatalf("%q: taken out again it is %q", doc, back)
		}
	}
	if set < 5_000 {
		t.Errorf("only %d were objects", set)
	}
}

// squeeze leaves out white space.
func squeeze(doc string) string { return strings.Join(strings.Fields(doc), "") }
