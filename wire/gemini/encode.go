package gemini

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// encode writes the body of a prompt: the one it was read from with the
// members exchanged that differ, or a new one.
func encode(p *prompt.Prompt) []byte {
	contents := layOut(p)
	if spliced(p) {
		if root, ok := parse(p.Source.Body); ok {
			if r, err := open(root); err == nil {
				return splice(p, root, r, contents)
			}
		}
	}
	var b body
	if len(p.System) > 0 {
		b.member("systemInstruction", writeSystem(p.System, gjson.Result{}))
	}
	if len(p.Tools) > 0 {
		b.member("tools", writeTools(p.Tools))
	}
	b.member("contents", writeArray(contents))
	if p.MaxOutput > 0 {
		b.member("generationConfig", writeMaxOutput(gjson.Result{}, p.MaxOutput))
	}
	return b.end()
}

// splice exchanges the members of a body that differ from the prompt. Every
// other member keeps its bytes and its place.
func splice(p *prompt.Prompt, root gjson.Result, r request, contents []string) []byte {
	newContents := !equalElements(r.contents, contents)
	was, err := decodeSystem(r.system)
	newSystem := err != nil || !slices.Equal(was, p.System)
	had, err := decodeTools(r.tools)
	newTools := err != nil || !slices.Equal(had, p.Tools)
	newMax := int(field(r.config, "maxOutputTokens").Int()) != p.MaxOutput
	if !newContents && !newSystem && !newTools && !newMax {
		return []byte(p.Source.Body)
	}

	exchange := map[string]string{}
	if newContents {
		exchange["contents"] = writeArray(contents)
	}
	if newSystem {
		exchange["systemInstruction"] = writeSystem(p.System, r.system)
	}
	if newTools {
		exchange["tools"] = writeTools(p.Tools)
	}
	if newMax {
		exchange["generationConfig"] = writeMaxOutput(r.config, p.MaxOutput)
	}
	var b body
	root.ForEach(func(key, value gjson.Result) bool {
		name := camel(key.Str)
		if text, ok := exchange[name]; ok {
			value.Raw = text
			delete(exchange, name)
		}
		b.raw(key.Raw, value.Raw)
		return true
	})
	for _, name := range []string{"systemInstruction", "tools", "contents", "generationConfig"} {
		if text, ok := exchange[name]; ok {
			b.member(name, text)
		}
	}
	return b.end()
}

// equalElements reports whether an array has exactly the given elements.
func equalElements(array gjson.Result, elements []string) bool {
	if !array.IsArray() {
		return false
	}
	n, equal := 0, true
	array.ForEach(func(_, element gjson.Result) bool {
		equal = n < len(elements) && elements[n] == element.Raw
		n++
		return equal
	})
	return equal && n == len(elements)
}

// body collects the members of the request. A member with an empty value is
// left out.
type body struct{ b []byte }

func (b *body) member(name, value string) { b.raw(`"`+name+`"`, value) }

func (b *body) raw(key, value string) {
	if value == "" {
		return
	}
	if len(b.b) == 0 {
		b.b = append(b.b, '{')
	} else {
		b.b = append(b.b, ',')
	}
	b.b = append(append(append(b.b, key...), ':'), value...)
}

func (b *body) end() []byte {
	if len(b.b) == 0 {
		return []byte("{}")
	}
	return append(b.b, '}')
}

func writeArray(elements []string) string {
	n := 2 + len(elements)
	for _, e := range elements {
		n += len(e)
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteByte('[')
	for i, e := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(e)
	}
	b.WriteByte(']')
	return b.String()
}

// writeSystem writes the system instruction; other members that it had, such
// as its role, stay. It returns "" when no text is left.
func writeSystem(blocks []prompt.System, old gjson.Result) string {
	var parts []string
	for _, s := range blocks {
		switch {
		case s.API == wire.Gemini && s.Raw != "":
			parts = append(parts, s.Raw)
		case s.Text != "":
			parts = append(parts, textPart(s.Text))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	var b body
	b.member("parts", writeArray(parts))
	if old.IsObject() {
		old.ForEach(func(key, value gjson.Result) bool {
			if key.Str != "parts" {
				b.raw(key.Raw, value.Raw)
			}
			return true
		})
	}
	return string(b.end())
}

// writeTools writes the declarations of functions that follow each other into
// one element, and each tool of the provider into one of its own. Tools that
// another provider defines have no schema that could be declared and are left
// out.
func writeTools(tools []prompt.Tool) string {
	var elements, declarations []string
	flush := func() {
		if len(declarations) > 0 {
			elements = append(elements, `{"functionDeclarations":`+writeArray(declarations)+`}`)
			declarations = nil
		}
	}
	for i := range tools {
		t := &tools[i]
		switch {
		case t.API == wire.Gemini && t.Raw != "" && builtIn(t):
			flush()
			elements = append(elements, t.Raw)
		case t.API == wire.Gemini && t.Raw != "":
			declarations = append(declarations, t.Raw)
		case t.API == "" || t.Schema != "":
			declarations = append(declarations, declaration(t))
		}
	}
	flush()
	if len(elements) == 0 {
		return ""
	}
	return writeArray(elements)
}

// builtIn reports whether a tool of ours was read from a field of its own, and
// not from the function declarations.
func builtIn(t *prompt.Tool) bool {
	own := false
	gjson.Parse(t.Raw).ForEach(func(key, _ gjson.Result) bool {
		own = key.Str == t.Name
		return false
	})
	return own && t.Schema == ""
}

// declaration declares a function. Its schema goes into the field that takes
// JSON schema as it is, because the older one knows only a part of it.
func declaration(t *prompt.Tool) string {
	var b body
	b.member("name", rawjson.Quote(functionName(t.Name)))
	if t.Description != "" {
		b.member("description", rawjson.Quote(t.Description))
	}
	if isObject(t.Schema) {
		b.member("parametersJsonSchema", strings.TrimSpace(t.Schema))
	}
	return string(b.end())
}

// writeMaxOutput sets the output limit among the other settings, or takes it
// out when it is 0.
func writeMaxOutput(old gjson.Result, limit int) string {
	var b body
	if old.IsObject() {
		old.ForEach(func(key, value gjson.Result) bool {
			if camel(key.Str) != "maxOutputTokens" {
				b.raw(key.Raw, value.Raw)
			}
			return true
		})
	}
	if limit > 0 {
		b.member("maxOutputTokens", strconv.Itoa(limit))
	}
	return string(b.end())
}
