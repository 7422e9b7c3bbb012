package gemini

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
)

// encode writes the body of a prompt: a new one, or the one it was read from with the
// members that differ replaced.
func encode(p *prompt.Prompt) []byte {
	d := openMember(gjson.Result{})
	if isSpliced(p) {
		if read, err := openDocument(p.Source.Body); err == nil {
			d = read
		}
	}
	if had, err := decodeSystem(d.Get("systemInstruction")); err != nil || !slices.Equal(had, p.System) {
		d.Set("systemInstruction", writeSystem(p.System, d.Get("systemInstruction")))
	}
	if had, err := decodeTools(d.Get("tools")); err != nil || !slices.Equal(had, p.Tools) {
		d.Set("tools", writeTools(p.Tools))
	}
	d.SetArray("contents", layoutContents(p))
	if p.MaxOutput != maxOutput(d) {
		d.Set("generationConfig", writeMaxOutput(d.Get("generationConfig"), p.MaxOutput))
	}
	return d.Bytes()
}

// writeSystem writes the system instruction; other members that it had, such
// as its role, stay. It returns "" when no text is left.
func writeSystem(blocks []prompt.System, old gjson.Result) string {
	var parts []string
	for _, s := range blocks {
		switch {
		case isOwn(s.Source):
			parts = append(parts, s.Raw)
		case s.Text != "":
			parts = append(parts, textPart(s.Text))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	d := openMember(old)
	d.SetArray("parts", parts)
	return string(d.Bytes())
}

// writeTools writes consecutive function declarations into one element, and each tool of
// the provider into its own. Tools that another provider defines have no schema to declare
// and are left out.
func writeTools(tools []prompt.Tool) string {
	var elements, declarations []string
	flush := func() {
		if len(declarations) > 0 {
			elements = append(elements, `{"functionDeclarations":`+rawjson.Array(declarations)+`}`)
			declarations = nil
		}
	}
	for i := range tools {
		t := &tools[i]
		switch {
		case isOwn(t.Source) && isBuiltIn(t):
			flush()
			elements = append(elements, t.Raw)
		case isOwn(t.Source):
			declarations = append(declarations, t.Raw)
		case t.API == "" || t.Schema != "":
			declarations = append(declarations, declaration(t))
		}
	}
	flush()
	if len(elements) == 0 {
		return ""
	}
	return rawjson.Array(elements)
}

// isBuiltIn reports whether a tool of this API was read from a field of its own, not from
// the function declarations.
func isBuiltIn(t *prompt.Tool) bool {
	for first := range rawjson.Members(gjson.Parse(t.Raw)) {
		return first == t.Name && t.Schema == ""
	}
	return false
}

// declaration declares a function. Its schema goes into the field that accepts any JSON
// schema; the older field supports only a part.
func declaration(t *prompt.Tool) string {
	o := new(rawjson.Object).Str("name", functionName(t.Name))
	if t.Description != "" {
		o.Str("description", t.Description)
	}
	if rawjson.IsObject(t.Schema) {
		o.Raw("parametersJsonSchema", strings.TrimSpace(t.Schema))
	}
	return o.String()
}

// writeMaxOutput sets the output limit among the other settings, or removes it if it is 0.
func writeMaxOutput(old gjson.Result, limit int) string {
	d, value := openMember(old), ""
	if limit > 0 {
		value = strconv.Itoa(limit)
	}
	d.Set("maxOutputTokens", value)
	return string(d.Bytes())
}

// openMember opens a member of the body to change what is in it.
func openMember(old gjson.Result) *rawjson.Document {
	d, ok := rawjson.Open(old.Raw, camel)
	if !ok {
		d, _ = rawjson.Open("{}", camel)
	}
	return d
}
