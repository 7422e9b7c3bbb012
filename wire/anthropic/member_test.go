package anthropic

import "testing"

func TestWithMember(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`:                              `{"type":"x"}`,
		` { } `:                           `{"type":"x" }`,
		`{"a":1}`:                         `{"a":1,"type":"x"}`,
		"{ \"a\" : {\"type\":2}\n\t}\n":   "{ \"a\" : {\"type\":2},\"type\":\"x\"\n\t}",
		`{"a":"} "}`:                      `{"a":"} ","type":"x"}`,
		`{"type":null,"a":"\n"}`:          `{"type":"x","a":"\n"}`,
		`{"\u0074ype":[1], "a":2}`:        `{"\u0074ype":"x", "a":2}`,
		`{"type":1,"b":2,"type":"three"}`: `{"b":2,"type":"x"}`,
	} {
		if got := withMember(doc, "type", `"x"`); got != want {
			t.Errorf("%s became %s, want %s", doc, got, want)
		}
	}
}
