package policyfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// Schema is the JSON schema (draft 2020-12) of policy files, made of the same
// table that reads them, for editors.
func Schema() []byte {
	defs := map[string]any{"common": baseSchema("")}
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
		"then": map[string]any{"$ref": "#/$defs/" + automatic},
	})
	doc, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Palimpsest policy",
		"type":    "object",
		"allOf":   cases,
		"$defs":   defs,
		"properties": map[string]any{"base": map[string]any{
			"description": "the policy that the file starts from",
			"type":        "string", "default": automatic,
			"anyOf": []any{
				map[string]any{"enum": Bases()},
				map[string]any{"pattern": `^last-(messages|tokens|turns):[1-9][0-9]*$`},
				map[string]any{"pattern": `^ratio:0?\.[0-9]+$`},
			},
		}},
	}, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("policyfile: %v", err)) // the table holds no value that JSON has not
	}
	return append(doc, '\n')
}

// baseSchema describes the files of one base; that of no base is what all have
// in common.
func baseSchema(base string) map[string]any {
	defaults := Default(base)
	top := map[string]any{"base": true}
	if base != "" {
		for group := range baseSchema("")["properties"].(map[string]any) {
			if group != "base" && !varies(group) {
				top[group] = map[string]any{"$ref": "#/$defs/common/properties/" + group}
			}
		}
	}
	put := func(path string, schema any) {
		group, key, nested := strings.Cut(path, ".")
		if !nested {
			top[path] = schema
			return
		}
		g, ok := top[group].(map[string]any)
		if !ok {
			g = object(map[string]any{})
			top[group] = g
		}
		g["properties"].(map[string]any)[key] = schema
	}
	for i := range table {
		if f := &table[i]; f.of(base) && (base == "") != varies(f.path) {
			at := f.at(defaults)
			schema := f.schema(kindOf(at))
			schema["default"] = f.get(at)
			put(f.path, schema)
		}
	}
	if base == "" {
		return object(top)
	}
	use := find(base, "summarizer.use")
	top["summarizer"] = map[string]any{"anyOf": []any{top["summarizer"], use.schema(texts)}}
	if fields := toolFields(base); len(fields) > 0 {
		tool := map[string]any{}
		for _, f := range fields {
			tool[f.path] = f.schema(kindOf(f.at(&toolpolicy.Policy{})))
		}
		put(overrides, map[string]any{
			"description": "what holds for single tools, by name", "type": []string{"object", "null"},
			"additionalProperties": object(tool),
		})
	}
	return object(top)
}

func object(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// varies reports whether what stands under the first key of a path depends on
// the base.
func varies(path string) bool {
	group, _, _ := strings.Cut(path, ".")
	return slices.ContainsFunc(table, func(f field) bool {
		head, _, _ := strings.Cut(f.path, ".")
		return head == group && f.bases != nil
	})
}

// schema describes one field.
func (f *field) schema(k kind) map[string]any {
	var one map[string]any
	switch k {
	case truth:
		one = map[string]any{"type": "boolean"}
	case whole:
		one = map[string]any{"type": "integer", "minimum": f.min, "maximum": f.max}
	case number:
		one = map[string]any{"type": "number", "minimum": f.min, "maximum": f.max}
	case duration:
		one = map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`}
	default:
		one = map[string]any{"type": "string", "minLength": 1}
		switch {
		case f.model:
			one["pattern"] = `^(extractive|(anthropic|openai):.+)$`
		case f.enum != nil:
			one = map[string]any{"enum": f.enum}
		}
	}
	if k == texts {
		list := map[string]any{"type": "array", "items": one}
		if f.model {
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
	one["description"] = f.comment(k)
	return one
}
