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

func TestCanMark(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"type":"text","text":"a"}`:                true,
		`{"type":"text","text":""}`:                 false,
		`{"type":"text","text":" "}`:                false,
		`{"type":"text","text":"\n\t"}`:             false,
		`{"type":"text","text":"\u0020"}`:           false,
		`{"type":"text","text":"\n\"a"}`:            true,
		`{"type":"text","text":"` + "\u00a0" + `"}`: false,
		`{"type":"text","text":"é"}`:                true,
		`{"text":"a","type":"text"}`:                true,
		`{"text":" ","type":"text"}`:                false,
		`{"type":"thinking","text":"a"}`:            false,
		`{"type":"image"}`:                          true,
		`"a"`:                                       true,
		`" "`:                                       false,
	} {
		if canMark(raw) != want {
			t.Errorf("%s: want %v", raw, want)
		}
	}
}
