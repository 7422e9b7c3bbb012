package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func five() []thread.Message {
	return []thread.Message{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}}
}

func TestReadDelta(t *testing.T) {
	for sources, want := range map[string][]thread.ID{
		`"sources":[1,3]`:             {"a", "c"},
		`"sources":["[2]","#4",2]`:    {"b", "d"},
		`"sources":"2-4"`:             {"b", "c", "d"},
		`"source":3`:                  {"c"},
		`"sources":"1, 5"`:            {"a", "e"},
		`"sources":[0,6,-1,99999999]`: {"a"}, // -1 is read as 1
		`"sources":["4-2"]`:           {"d", "b"},
		`"sources":null`:              nil,
		`"sources":{"x":1}`:           {"a"},
	} {
		got, err := readDelta(`{"facts":[{"text":" two\n words ",`+sources+`}]}`, five())
		if err != nil || len(got.Facts) != 1 {
			t.Fatalf("%s: %v %+v", sources, err, got)
		}
		if diff := cmp.Diff(want, got.Facts[0].Sources); diff != "" || got.Facts[0].Text != "two words" {
			t.Errorf("%s: %q (-want +got):\n%s", sources, got.Facts[0].Text, diff)
		}
	}
}

// The schema is one that strict providers take, and an answer of its shape is
// read in full.
func TestSchema(t *testing.T) {
	s, err := schema(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"facts", "decisions", "plan", "open_items", "failed_attempts", "tool_outcomes"} {
		if !strings.Contains(s.JSON, `"`+name+`":{"type":"array"`) {
			t.Errorf("no %s in %s", name, s.JSON)
		}
	}
	got, err := readDelta(`{"facts":["x"],"decisions":["y"],"plan":["z"],"open_items":["o"],"failed_attempts":["f"],"tool_outcomes":["t"]}`, nil)
	if err != nil || len(got.Facts) != 2 || len(got.Decisions) != 1 || len(got.CurrentPlan) != 1 || len(got.OpenItems) != 1 || len(got.FailedAttempts) != 1 {
		t.Errorf("%v %+v", err, got)
	}
}

// The mark stands in none of the texts, also when one holds what would be it.
func TestMark(t *testing.T) {
	texts := []string{"hello", "world"}
	mark := markFor(texts)
	if mark == markFor([]string{"hellow", "orld"}) || mark != markFor(texts) {
		t.Error("the mark is not a hash of the texts")
	}
}

func FuzzReadDelta(f *testing.F) {
	for _, s := range []string{
		`{"facts":[{"text":"x","sources":[1,"2-4"]}]}`, `{"facts":null,"decisions":{"decision":"d"}}`, `{"plan":[[],{},1,null,"s"]}`,
		`{"open_items":[{"description":"d","priority":7,"sources":"9-1"}]}`, `{}`, `[]`, `{"facts":[{"text":"x","sources":["1-99999999999999999999"]}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object, ok := rawjson.FindObject(text)
		if !ok {
			return
		}
		got, err := readDelta(object, five())
		n := len(got.Facts) + len(got.Decisions) + len(got.CurrentPlan) + len(got.OpenItems) + len(got.FailedAttempts)
		if (err == nil) != (n > 0) {
			t.Fatalf("%d items, error %v", n, err)
		}
		for _, it := range got.Facts {
			if it.Text == "" || strings.ContainsAny(it.Text, "\n\r") || len(it.Sources) > 5 {
				t.Fatalf("%+v", it)
			}
		}
	})
}
