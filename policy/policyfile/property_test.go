package policyfile_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// settings draws a file of any base with any of its fields overridden, out of
// what the schema says: what the schema allows must be readable.
func settings(t *rapid.T) map[string]any {
	base := rapid.SampledFrom(policyfile.Bases()).Draw(t, "base")
	file := map[string]any{"base": base}
	root := schemaOf()
	groups := resolve(root, root["$defs"].(map[string]any)[base])["properties"].(map[string]any)
	for _, group := range sorted(groups) {
		if group == "base" || rapid.Bool().Draw(t, "leave out "+group) {
			continue
		}
		file[group] = draw(t, root, groups[group], group)
	}
	return file
}

// draw makes a value that a schema allows.
func draw(t *rapid.T, root map[string]any, schema any, at string) any {
	s := resolve(root, schema)
	if any, ok := s["anyOf"].([]any); ok {
		return draw(t, root, rapid.SampledFrom(any).Draw(t, at+" of"), at)
	}
	if enum, ok := s["enum"].([]any); ok {
		return rapid.SampledFrom(enum).Draw(t, at)
	}
	if kinds, ok := s["type"].([]any); ok {
		s["type"] = kinds[0]
	}
	switch s["type"] {
	case "boolean":
		return rapid.Bool().Draw(t, at)
	case "integer":
		return rapid.Int64Range(int64(s["minimum"].(float64)), int64(s["maximum"].(float64))).Draw(t, at)
	case "number":
		return rapid.Float64Range(s["minimum"].(float64), s["maximum"].(float64)).Draw(t, at)
	case "string":
		switch pattern, _ := s["pattern"].(string); {
		case strings.Contains(pattern, "anthropic"):
			return rapid.SampledFrom([]string{"openai:qwen3:8b", "anthropic:claude-haiku-4-5", "openai:a/b, c", "openai:#"}).Draw(t, at)
		case strings.Contains(pattern, "chars"):
			return rapid.SampledFrom([]string{"auto", "o200k", "claude-4.7", "chars/4", "bytes/3.5", "chars/0.1", "bytes/100", "chars/99.9"}).Draw(t, at)
		case strings.Contains(pattern, "none"):
			return rapid.SampledFrom([]string{"none", "openai:text-embedding-3-small", "openai:a/b, c", "openai:#"}).Draw(t, at)
		case pattern != "":
			return rapid.SampledFrom([]string{"90s", "1m30s", "1h", "2m", "1.5s"}).Draw(t, at)
		}
		return namedValue().Draw(t, at)
	case "array":
		list := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
			return draw(t, root, s["items"], at).(string)
		}), int(or(s["minItems"], 0.0)), 4, func(s string) string { return s }).Draw(t, at)
		return list
	case "object":
		out := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		for _, key := range sorted(properties) {
			if rapid.Bool().Draw(t, at+"."+key+" is there") {
				out[key] = draw(t, root, properties[key], at+"."+key)
			}
		}
		if more, ok := s["additionalProperties"].(map[string]any); ok {
			for _, name := range rapid.SliceOfNDistinct(namedValue(), 0, 3, toolclass.Normal).Draw(t, at+" names") {
				if toolclass.Normal(name) != "" {
					out[name] = draw(t, root, more, at+"."+name)
				}
			}
		}
		return out
	}
	t.Fatalf("%s: a schema that the test does not know: %v", at, s)
	return nil
}

func or[T any](v any, fallback T) T {
	if x, ok := v.(T); ok {
		return x
	}
	return fallback
}

func sorted(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// namedValue draws texts that YAML could take for something else.
func namedValue() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"linear", "true", "No", "null", "~", "1e3", "0x10", "12:30:45", "-", "- a", "a: b", "#x", "a #b", "*a", "&a", "!t", "'", `"`, "{}", "[", " a ", "a,b", "ä", "日本", "\u2028", "\t", "a\nb", "\x01", "\U0001F600", "=", "<<", "?", "|", ">", "%x", "@", "`", "2001-01-01", ".inf", "010", "auto", "base"}),
		rapid.StringN(1, 12, 40).Filter(utf8.ValidString),
	)
}

func resolve(root map[string]any, schema any) map[string]any {
	s := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		at := any(root)
		for key := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(map[string]any)[key]
		}
		return resolve(root, at)
	}
	return s
}

func schemaOf() map[string]any {
	var s map[string]any
	if err := json.Unmarshal(policyfile.Schema(), &s); err != nil {
		panic(err)
	}
	return s
}

// TestShowAndRead: what is read, written and read again is the same, for files
// of every base with anything overridden; the file in between says every field.
func TestShowAndRead(t *testing.T) {
	refuse := validator(t, schemaOf())
	property.Check(t, func(t *rapid.T) {
		file := settings(t)
		data, err := json.Marshal(file) // JSON is YAML
		if err != nil {
			t.Fatal(err)
		}
		first, err := policyfile.Read("drawn.yaml", data)
		if err != nil {
			t.Fatalf("the schema allows it: %v\n%s", err, data)
		}
		shown := first.YAML()
		second, err := policyfile.Read("shown.yaml", shown)
		if err != nil {
			t.Fatalf("%v\n%s", err, shown)
		}
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("%s\n%s", cmp.Diff(first, second, wholly), shown)
		}
		if err := refuse(shown); err != nil {
			t.Fatalf("the schema refuses what is shown: %v\n%s", err, shown)
		}
		for path, value := range leaves("", file) {
			if got, ok := leavesOf(t, shown)[path]; !ok && !strings.HasPrefix(path, "tools.overrides") && path != "summarizer" {
				t.Fatalf("%s: %v is not shown (%v)\n%s", path, value, got, shown)
			}
		}
	})
}

func leavesOf(t *rapid.T, data []byte) map[string]any {
	var m map[string]any
	if err := yaml.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return leaves("", m)
}

func leaves(path string, m map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range m {
		at := strings.TrimPrefix(path+"."+key, ".")
		if below, ok := v.(map[string]any); ok {
			maps.Copy(out, leaves(at, below))
			continue
		}
		out[at] = v
	}
	return out
}

// TestSchemaRefuses: the schema refuses what Read refuses.
func TestSchemaRefuses(t *testing.T) {
	refuse := validator(t, schemaOf())
	for _, in := range []string{
		"base: seesion", "base: 7", "base: last-turns:0", "triger: {}", "base: loop\ntrigger: {hard: 0.5}", "trigger: {hard: 80}", "trigger: {hard: high}",
		"base: loop\ntrigger: {long_context: 3}", "base: loop\ntrigger: {context_limit: 1.5}", "base: loop\ntrigger: {context_limit: many}", "base: loop\ntrigger: {context_limit: 0}",
		"base: timeline\nexpire: {ttl: 5}", "base: workstream\nsummary: {role: tool}", "summarizer: gpt-5", "summarizer: {use: []}", "summarizer: {timeout: soon}",
		"rehydration: {auto_rehydrate_sensitivities: [secret]}", "tools: {overrides: {Bash: {durability: forever}}}", "tools: {overrides: {Bash: 3}}", "trigger: 3", "counter: 3",
	} {
		if _, err := policyfile.Read("p.yaml", []byte(in)); err == nil {
			t.Errorf("%s: was read", in)
		}
		if refuse([]byte(in)) == nil {
			t.Errorf("%s: the schema allows it", in)
		}
	}
	for _, in := range []string{"{}", "base: ratio:0.25", "base: last-turns:12", "summarizer: openai:x", "summarizer: [openai:x, extractive]", "summarizer: agent", "tools: {overrides: null}", "base: timeline\nexpire: {ttl: 1h30m}"} {
		if err := refuse([]byte(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if _, err := policyfile.Read("p.yaml", []byte(in)); err != nil {
			t.Error(err)
		}
	}
}

// validator returns what says why a schema does not allow a file or a value.
func validator(t *testing.T, schema map[string]any) (refuse func(data []byte) error) {
	var rules jsonschema.Schema
	text, err := json.Marshal(schema)
	if err := errors.Join(err, json.Unmarshal(text, &rules)); err != nil {
		t.Fatal(err)
	}
	resolved, err := rules.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return func(data []byte) error {
		var v any
		if err := yaml.Unmarshal(data, &v); err != nil {
			return err
		}
		return resolved.Validate(v)
	}
}

// FuzzRead: whatever a file holds, it is read or refused with a place, and what
// is read comes back the same.
func FuzzRead(f *testing.F) {
	for _, base := range policyfile.Bases() {
		f.Add(policyfile.Default(base).YAML())
	}
	for _, seed := range []string{"base: loop\ntrigger: {utilization: 0.5}\n", "a: &a [*a]\n", "? - x\n: y", "base: |\n  auto\n", "<<: {base: loop}", "%YAML 1.2\n---\nbase: auto\n...", "summarizer: [openai:\"x\"]", "tools:\n  overrides:\n    ? a\n    : {}\n", "base: !!str auto", "{base: auto, base: auto}", "counter: \"\\u0000\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := policyfile.Read("f.yaml", data)
		if err != nil {
			if !errors.Is(err, policyfile.ErrInvalid) || !strings.HasPrefix(err.Error(), "f.yaml") {
				t.Fatal(err)
			}
			return
		}
		shown := s.YAML()
		again, err := policyfile.Read("shown.yaml", shown)
		if err != nil {
			t.Fatalf("%v\n%s", err, shown)
		}
		if !reflect.DeepEqual(s, again) {
			t.Fatalf("%s\n%s", cmp.Diff(s, again, wholly), shown)
		}
		if p := s.Policy(nil); p == nil || p.Name() != s.Name() {
			t.Fatalf("policy %v of %s", p, shown)
		}
		if s.Registry().Policy("nobody knows it").Durability == thread.Durability("") {
			t.Fatal("no durability")
		}
	})
}

// TestEveryField: each field of each base changes something, and no two of them
// the same: a row of the table that points at the wrong setting is found here.
func TestEveryField(t *testing.T) {
	root, fields := schemaOf(), 0
	for _, base := range policyfile.Bases() {
		seen := map[string]string{}
		var walk func(path string, schema any)
		walk = func(path string, schema any) {
			s := resolve(root, schema)
			if path == "summarizer" {
				s = resolve(root, s["anyOf"].([]any)[0])
			}
			if path != "tools.overrides" && s["properties"] != nil {
				for key, below := range s["properties"].(map[string]any) {
					if key != "base" {
						walk(strings.TrimPrefix(path+"."+key, "."), below)
					}
				}
				return
			}
			fields++
			var value any = "chars/4"
			switch was := s["default"].(type) {
			case bool:
				value = !was
			case float64:
				value = was + 1
				if was < 1 && was > 0 {
					value = was / 2
				}
			case string:
				refuse := validator(t, s)
				for _, other := range []any{"77s", 77, 1.5, 0.25, "cost", "system", "user", "ephemeral", "model", "openai:q", "x"} {
					if doc, err := json.Marshal(other); err == nil && refuse(doc) == nil && other != was {
						value = other
						break
					}
				}
			case []any:
				value = []string{"openai:q"}
				if path == "rehydration.auto_rehydrate_sensitivities" {
					value = []string{"public"}
				}
			case nil:
				value = map[string]any{"Bash": map[string]any{"durability": "ephemeral"}}
			}
			var file any = value
			keys := strings.Split(path, ".")
			for _, key := range slices.Backward(keys) {
				file = map[string]any{key: file}
			}
			file.(map[string]any)["base"] = base
			data, err := json.Marshal(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := policyfile.Read(path, data)
			if err != nil {
				t.Error(err)
				return
			}
			diff := strings.ReplaceAll(cmp.Diff(policyfile.Default(base), got, wholly), "\u00a0", " ")
			if other, twice := seen[diff]; diff == "" || twice {
				t.Errorf("%s of %s: changes the same as %q:\n%s", path, base, other, diff)
			}
			seen[diff] = path
		}
		walk("", root["$defs"].(map[string]any)[base])
	}
	if fields < 150 {
		t.Error("only", fields, "fields")
	}
}
