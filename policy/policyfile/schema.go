package policyfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
)

// Schema is the JSON schema (draft 2020-12) of policy files, for editors.
func Schema() []byte {
	defs := map[string]any{}
	cases := []any{}
	for _, base := range Bases() {
		defs[base] = baseSchema(base)
		cases = append(cases, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"base": map[string]any{"pattern": "^" + regexp.QuoteMeta(base) + "(:|$)"}}, "required": []string{"base"}},
			"then": map[string]any{"$ref": "#/$defs/" + base},
		})
	}
	cases = append(cases, map[string]any{
		"if":   map[string]any{"not": map[string]any{"required": []string{"base"}}},
		"then": map[string]any{"$ref": "#/$defs/" + autoWord},
	})
	doc, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Palimpsest policy",
		"type":    "object",
		"allOf":   cases,
		"$defs":   defs,
		"properties": map[string]any{"base": map[string]any{
			"description": "the policy that the file starts from",
			"type":        "string", "default": autoWord,
			"anyOf": []any{
				map[string]any{"enum": Bases()},
				map[string]any{"pattern": `^last-(messages|tokens|turns):[1-9][0-9]*$`},
				map[string]any{"pattern": `^ratio:0?\.[0-9]+$`},
			},
		}},
	}, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("policyfile: %v", err)) // the fields hold no value that JSON has not
	}
	return append(doc, '\n')
}

// baseSchema describes the files of one base.
func baseSchema(base string) map[string]any {
	top := map[string]any{"base": true}
	for _, f := range Default(base).fields() {
		schema := f.schema(base)
		if f.kind != toolOverrides {
			schema["default"] = f.get()
		}
		group, key, nested := strings.Cut(f.path, ".")
		switch {
		case !nested:
			top[group] = schema
			continue
		case top[group] == nil:
			top[group] = object(map[string]any{})
		}
		top[group].(map[string]any)["properties"].(map[string]any)[key] = schema
	}
	if whole, ok := top["summarizer"].(map[string]any); ok {
		top["summarizer"] = map[string]any{"anyOf": []any{whole, whole["properties"].(map[string]any)["use"]}}
	}
	return object(top)
}

func object(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// schema describes one field.
func (f *field) schema(base string) map[string]any {
	var one map[string]any
	switch f.kind {
	case toolOverrides:
		tool := map[string]any{}
		for _, f := range fieldsOf(base, new(toolpolicy.Policy)) {
			tool[f.path] = f.schema(base)
		}
		one = map[string]any{"type": []string{"object", "null"}, "additionalProperties": object(tool)}
	case boolean:
		one = map[string]any{"type": "boolean"}
	case wholeNumber:
		one = map[string]any{"type": "integer", "minimum": f.min, "maximum": f.max}
	case number:
		one = map[string]any{"type": "number", "minimum": f.min, "maximum": f.max}
	case duration:
		one = map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`}
	default:
		one = map[string]any{"type": "string", "minLength": 1}
		switch {
		case f.isModelChain:
			one["pattern"] = "^(" + strings.Join(f.enum, "|") + "|agent|(anthropic|openai):.+)$"
		case f.names != nil:
			one["pattern"] = f.names.pattern
		case f.enum != nil:
			one = map[string]any{"enum": f.enum}
		}
	}
	if f.kind == textList {
		list := map[string]any{"type": "array", "items": one}
		if f.isModelChain {
			list["minItems"] = 1
		}
		one = map[string]any{"anyOf": []any{one, list}}
	}
	if len(f.words) > 0 {
		words := []string{}
		for _, w := range f.words {
			words = append(words, w.text)
		}
		slices.Sort(words)
		one = map[string]any{"anyOf": []any{one, map[string]any{"enum": words}}}
	}
	one["description"] = f.comment()
	return one
}
