package gemini

import (
	"fmt"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// The rules, by their short names. Sources: the REST reference of
// generateContent (Content, Part, FunctionDeclaration), the guides "Function
// calling" and "Thought signatures", and the texts of the API's own errors.
const (
	ruleJSON        = "json"
	ruleContents    = "contents"
	ruleRole        = "role"
	ruleStart       = "start"
	ruleAlternate   = "alternate"
	ruleEnd         = "end"
	ruleParts       = "parts"
	rulePart        = "part"
	ruleEmptyText   = "empty-text"
	ruleMedia       = "media"
	ruleCall        = "call"
	ruleResponse    = "response"
	ruleCallTurn    = "call-turn"
	rulePairing     = "pairing"
	ruleMixed       = "mixed-response"
	ruleSignature   = "signature"
	ruleField       = "field"
	ruleSystem      = "system"
	ruleDeclaration = "declaration"
)

// checker collects problems.
type checker struct{ problems []wire.Problem }

func (c *checker) refuse(path, rule, format string, args ...any) {
	c.problems = append(c.problems, wire.Problem{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) advise(path, rule, format string, args ...any) {
	c.problems = append(c.problems, wire.Problem{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...), Advice: true})
}

func validate(body string) []wire.Problem {
	var c checker
	if !utf8.ValidString(body) {
		c.refuse("", ruleJSON, "the body is not UTF-8; encode it anew")
	}
	root, ok := parse(body)
	switch {
	case !ok:
		c.refuse("", ruleJSON, "the body is not valid JSON, or nests deeper than %d", rawjson.MaxDepth)
		return c.problems
	case !root.IsObject():
		c.refuse("", ruleJSON, "the body is not a JSON object")
		return c.problems
	}
	cached := str(field(root, "cachedContent")) != ""
	seen := map[string]bool{}
	root.ForEach(func(key, value gjson.Result) bool {
		name := camel(key.Str)
		if seen[name] {
			c.refuse(name, ruleField, "the field stands twice; send it once")
		}
		seen[name] = true
		switch name {
		case "contents":
			c.contents(value, cached)
		case "systemInstruction":
			c.system(value)
		case "tools":
			c.tools(value)
		default:
			if !known(name) {
				c.advise(name, ruleField, "unknown field; Vertex AI refuses it")
			}
		}
		return true
	})
	if !seen["contents"] {
		c.refuse("contents", ruleContents, "contents are missing; send at least one user content")
	}
	return c.problems
}

// known reports whether a request may have a field of this name: the public
// API's and those of Vertex AI.
func known(name string) bool {
	switch name {
	case "model", "toolConfig", "safetySettings", "generationConfig", "cachedContent",
		"labels", "modelArmorConfig", "serviceTier", "store":
		return true
	}
	return false
}

// system checks the system instruction: text only.
func (c *checker) system(v gjson.Result) {
	if v.Type == gjson.Null {
		return
	}
	if !v.IsObject() {
		c.refuse("systemInstruction", ruleSystem, "want an object with parts")
		return
	}
	parts := field(v, "parts")
	if !parts.IsArray() || len(parts.Raw) < 2 || !hasElements(parts) {
		c.refuse("systemInstruction.parts", ruleSystem, "want at least one part; leave the field out when there is nothing to say")
		return
	}
	n := 0
	parts.ForEach(func(_, part gjson.Result) bool {
		if f := cutPart(part); f.kind != "text" || f.several || f.data.Type != gjson.String {
			c.refuse(fmt.Sprintf("systemInstruction.parts[%d]", n), ruleSystem, "only text may stand here")
		}
		n++
		return true
	})
}

func hasElements(array gjson.Result) (some bool) {
	array.ForEach(func(_, _ gjson.Result) bool {
		some = true
		return false
	})
	return some
}

// tools checks the declarations of functions.
func (c *checker) tools(v gjson.Result) {
	if v.Type == gjson.Null {
		return
	}
	if !v.IsArray() {
		c.refuse("tools", ruleDeclaration, "want an array")
		return
	}
	first := map[string]string{}
	n := 0
	v.ForEach(func(_, element gjson.Result) bool {
		path := fmt.Sprintf("tools[%d]", n)
		n++
		if !element.IsObject() {
			c.refuse(path, ruleDeclaration, "want an object")
			return true
		}
		list := field(element, "functionDeclarations")
		if !list.Exists() || list.Type == gjson.Null {
			return true
		}
		if !list.IsArray() {
			c.refuse(path+".functionDeclarations", ruleDeclaration, "want an array")
			return true
		}
		i := 0
		list.ForEach(func(_, d gjson.Result) bool {
			c.declaration(d, fmt.Sprintf("%s.functionDeclarations[%d]", path, i), first)
			i++
			return true
		})
		return true
	})
}

func (c *checker) declaration(d gjson.Result, path string, first map[string]string) {
	if !d.IsObject() {
		c.refuse(path, ruleDeclaration, "want an object")
		return
	}
	name := str(field(d, "name"))
	c.name(name, path+".name", ruleDeclaration)
	if at, twice := first[name]; twice {
		c.refuse(path+".name", ruleDeclaration, "function %q is declared at %s already; declare it once", name, at)
	} else {
		first[name] = path
	}
	old, schema := field(d, "parameters"), field(d, "parametersJsonSchema")
	if old.Exists() && schema.Exists() {
		c.refuse(path, ruleDeclaration, "parameters and parametersJsonSchema exclude each other; keep one")
	}
	for _, s := range []gjson.Result{old, schema} {
		if s.Exists() && s.Type != gjson.Null && !s.IsObject() {
			c.refuse(path, ruleDeclaration, "the schema is not an object")
		}
	}
}

// name checks the name of a function.
func (c *checker) name(name, path, rule string) {
	switch {
	case name == "":
		c.refuse(path, rule, "the function has no name")
	case !wideName(name):
		c.refuse(path, rule, "function name %q: want a letter or underscore, then up to 63 letters, digits, underscores, dots and dashes", name)
	case !plainName(name):
		c.advise(path, rule, "function name %q: older models take at most %d characters and no colons", name, nameLength)
	}
}
