package openai

import (
	"strings"
	"testing"
)

func TestStrictSchema(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                                                                          true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{},"additionalProperties":false}}},"required":["a"],"additionalProperties":false}`:                    true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`:                                                              true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"string"}}}`:                                                       true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                                                       false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                                                                                             false,
		`{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`:                                                                                                               false,
		`{"type":"object","properties":{"a":{"type":["object","null"]}},"required":["a"],"additionalProperties":false}`:                                                                                 false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":3}},"required":["a"],"additionalProperties":false}`:                                                                            false,
		`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}`:                                                                                                       false,
		`{"type":"object","anyOf":[],"properties":{},"additionalProperties":false}`:                                                                                                                     false,
		`{"type":"array","items":{"type":"string"}}`:                                                                                                                                                    false,
		`{"type":"object","properties":{"a":` + strings.Repeat(`{"type":"array","items":`, 3000) + `{"type":"string"}` + strings.Repeat("}", 3000) + `},"required":["a"],"additionalProperties":false}`: false,
	} {
		if got := strictSchema(schema); got != want {
			t.Errorf("%.150s: %v", schema, got)
		}
	}
}
