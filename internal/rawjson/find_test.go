package rawjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

var jsonTests = []struct {
	name, text, want string
}{
	{"bare", ` {"a": 1} `, `{"a": 1}`},
	{"byte order mark", "\ufeff{\"a\":1}", `{"a":1}`},
	{"fence", "Here you are:\n```json\n{\"a\": [1, 2]}\n```\nDone.", `{"a": [1, 2]}`},
	{"prose", `The answer is {"a":"}"} as asked.`, `{"a":"}"}`},
	{"braces in prose", `For {name} in {} I found {"a":1}, see {x}.`, `{"a":1}`},
	{"the longest", `{"a":1} or rather {"a":1,"b":{"c":2}}`, `{"a":1,"b":{"c":2}}`},
	{"thinking", "<think>maybe {\"a\":\"a long thought of nothing\"}</think>{\"a\":1}", `{"a":1}`},
	{"thinking opened by the template", "hm {\"draft\":true, \"more\":1}</think>\n{\"a\":1}", `{"a":1}`},
	{"thinking named inside", `{"a":"</think>"}`, `{"a":"</think>"}`},
	{"trailing commas", "{\"a\": [1, 2,],\n \"b\": \",}\",\n}", "{\"a\": [1, 2],\n \"b\": \",}\"\n}"},
	{"in an array", `[{"a":1}]`, `{"a":1}`},
	{"escapes", `{"a":"\\\"{"}`, `{"a":"\\\"{"}`},
	{"cut off", `{"a": [1, 2`, ""},
	{"cut off behind an inner object", `{"a": {"b": 1}, "c`, ""},
	{"broken behind an inner object", `{"a": {"b": 1} "c": 2}`, ""},
	{"trailing comma behind an inner object", `{"a": {"b": 1},}`, `{"a": {"b": 1}}`},
	{"a broken draft first", `{"a": {"b": 1} oops. Again: {"a":2}`, `{"a":2}`},
	{"single quotes", `{'a': 1}`, ""},
	{"no object", `"a" 1 [2]`, ""},
	{"empty", "", ""},
}

func TestFindObject(t *testing.T) {
	for _, test := range jsonTests {
		got, ok := rawjson.FindObject(test.text)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%s: %q, %v, want %q", test.name, got, ok, test.want)
		}
	}
}

// Text that opens objects without end is given up, not read a million times.
func TestFindObjectBounded(t *testing.T) {
	for _, text := range []string{
		strings.Repeat(`{"a":`, 200000), strings.Repeat("{", 1<<20), strings.Repeat(`{"a":1`, 100000), strings.Repeat("[1,", 300000),
	} {
		if got, ok := rawjson.FindObject(text); ok {
			t.Errorf("found %.40q", got)
		}
	}
}

func FuzzFindObject(f *testing.F) {
	for _, test := range jsonTests {
		f.Add(test.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := rawjson.FindObject(text)
		if ok != (got != "") {
			t.Fatalf("%q, %v", got, ok)
		}
		if ok && (!json.Valid([]byte(got)) || got[0] != '{') {
			t.Fatalf("%q is not an object", got)
		}
		var v any
		if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") && json.Unmarshal([]byte(trimmed), &v) == nil && got != trimmed && !strings.Contains(text, "</think>") {
			t.Fatalf("of an object only %q was found", got)
		}
	})
}
