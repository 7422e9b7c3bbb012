package gemini

import (
	"math"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

// The shapes of parts of the body.
var (
	filled = shape.Shape{Is: shape.String, Filled: true}
	some   = shape.Shape{Is: shape.Array, Filled: true}

	contentsShape = some.Explain("contents", "want an array of contents, with at least one of the user's")
	contentShape  = shape.Members(shape.Required("parts", some.Explain("parts", "want at least one part"))).Explain("contents", "want an object with role and parts")
	systemShape   = shape.Members(shape.Required("parts", some.Explain("system", "want at least one part; leave the field out when there is nothing to say"))).Explain("system", "want an object with parts")
	toolsShape    = &shape.Shape{
		Is: shape.Array, Rule: "declaration", Say: "want an array",
		Items: shape.Members(shape.Optional("functionDeclarations", &shape.Shape{
			Is: shape.Array, Rule: "declaration", Say: "want an array",
			Items: &shape.Shape{Is: shape.Object, Rule: "declaration", Say: "want an object", Rules: []shape.Rule{
				shape.Must("", "declaration", "parameters and parametersJsonSchema exclude each other; keep one", func(v gjson.Result) bool {
					return !field(v, "parameters").Exists() || !field(v, "parametersJsonSchema").Exists()
				}),
				shape.Must("", "declaration", "the schema is not an object", func(v gjson.Result) bool {
					return objectOrNothing(field(v, "parameters")) && objectOrNothing(field(v, "parametersJsonSchema"))
				}),
			}},
		})).Explain("declaration", "want an object"),
	}

	// The fields of a request, those of the public API and of Vertex AI.
	known = scan.WordSet("contents systemInstruction tools model toolConfig safetySettings generationConfig cachedContent labels modelArmorConfig serviceTier store")
)

// elsewhere is what Gemini has for fields of other APIs, and of its own in another place.
var elsewhere = map[string]string{
	"maxTokens": "generationConfig.maxOutputTokens", "maxCompletionTokens": "generationConfig.maxOutputTokens", "maxOutputTokens": "generationConfig.maxOutputTokens",
	"temperature": "generationConfig.temperature", "topP": "generationConfig.topP", "topK": "generationConfig.topK",
	"stop": "generationConfig.stopSequences", "stopSequences": "generationConfig.stopSequences",
	"messages": "contents", "input": "contents", "system": "systemInstruction", "instructions": "systemInstruction", "toolChoice": "toolConfig",
}

func objectOrNothing(v gjson.Result) bool { return v.Type == gjson.Null || v.IsObject() }

// checker collects problems.
type checker struct{ shape.Body }

// Validate checks a body against the published rules of generateContent: the REST reference (Content,
// Part, FunctionDeclaration), the guides "Function calling" and "Thought signatures", and the texts of
// the API's own errors. Rules that only Vertex AI or older models enforce are reported as advice.
func (Codec) Validate(body []byte) []wire.Problem {
	c := checker{shape.Body{Checker: shape.Checker{Absent: true, Get: field}}}
	if !utf8.Valid(body) {
		c.Refuse(0, "body", "json", "the body is not UTF-8; encode it anew")
	}
	if c.Open(body, camel, func(name string, v gjson.Result) {
		c.Refuse(v.Index, name, "field", "the field stands twice; send it once")
	}) {
		c.body()
	}
	c.CheckSize(wire.Gemini, "", len(body))
	return c.Problems()
}

func (c *checker) body() {
	for name, v := range c.Members {
		if !known[name] {
			here := ""
			if at := elsewhere[name]; at != "" {
				here = "; Gemini has " + at
			}
			c.Advise(v.Index, c.Keys[name], "field", "unknown field; Vertex AI refuses it%s", here)
		}
	}
	if v := c.Value("contents"); v.Exists() {
		c.contents(v, c.Value("cachedContent").Str != "")
	} else {
		c.Refuse(math.MaxInt, "contents", "contents", "contents are missing; send at least one user content")
	}
	if v := c.Value("systemInstruction"); v.Type != gjson.Null {
		c.system(v)
	}
	if v := c.Value("tools"); v.Type != gjson.Null {
		c.tools(v)
	}
}

// system checks the system instruction: text only.
func (c *checker) system(v gjson.Result) {
	if !c.Check(v.Index, "systemInstruction", v, systemShape) {
		return
	}
	shape.Each(field(v, "parts"), "systemInstruction.parts", func(path string, part gjson.Result) {
		if p := readPart(part); p.kind != "text" || p.several || p.data.Type != gjson.String {
			c.Refuse(v.Index, path, "system", "only text may stand here")
		}
	})
}

// tools checks the declarations of functions.
func (c *checker) tools(v gjson.Result) {
	c.Check(v.Index, "tools", v, toolsShape)
	first := map[string]string{}
	shape.Each(v, "tools", func(path string, element gjson.Result) {
		shape.Each(field(element, "functionDeclarations"), path+".functionDeclarations", func(path string, d gjson.Result) {
			if !d.IsObject() {
				return
			}
			name := field(d, "name").Str
			c.name(v.Index, name, path+".name", "declaration")
			if at, twice := first[name]; twice {
				c.Refuse(v.Index, path+".name", "declaration", "function %q is declared at %s already; declare it once", name, at)
			} else {
				first[name] = path
			}
		})
	})
}

// name checks the name of a function.
func (c *checker) name(at int, name, path, rule string) {
	switch {
	case name == "":
		c.Refuse(at, path, rule, "the function has no name")
	case !isWideName(name):
		c.Refuse(at, path, rule, "function name %q: want a letter or underscore, then up to 63 letters, digits, underscores, dots and dashes", name)
	case !isName(name, nameLength):
		c.Advise(at, path, rule, "function name %q: older models take at most %d characters and no colons", name, nameLength)
	}
}
