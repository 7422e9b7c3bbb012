package openai

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

// What parts of the body have to be.
var (
	anyText = &shape.Shape{Is: shape.String}
	text    = &shape.Shape{Is: shape.String, Filled: true}

	chatFunctionName = &shape.Shape{Is: shape.String, Filled: true, Rules: []shape.Rule{
		shape.Must("", "name", "want at most 64 letters, digits, _ and -", func(v gjson.Result) bool { return shape.IsName(v.Str, 64) }),
	}}
	// What tools of either type and legacy functions declare.
	chatDefinition = shape.Members(
		shape.Required("name", chatFunctionName),
		shape.Optional("description", anyText),
		shape.Optional("parameters", shape.Members(shape.Optional("type", shape.OneOf("object").Explain("value", "the schema of the arguments must be of type object")))),
		shape.Optional("strict", &shape.Shape{Is: shape.Bool | shape.Null}),
	).Explain("type", "want an object")
	chatTools = map[string]*shape.Shape{
		"function": shape.Members(shape.Required("function", chatDefinition)),
		"custom":   shape.Members(shape.Required("custom", chatDefinition)),
	}

	chatFunctionCall = shape.Members(shape.Required("name", chatFunctionName), shape.Required("arguments", anyText)).Explain("type", "want an object")
	chatCalls        = map[string]*shape.Shape{
		"function": shape.Members(shape.Required("function", chatFunctionCall)),
		"custom":   shape.Members(shape.Required("custom", shape.Members(shape.Required("name", chatFunctionName), shape.Required("input", anyText)).Explain("type", "want an object"))),
	}
	chatCallID = &shape.Shape{Is: shape.String, Filled: true, Rules: []shape.Rule{
		shape.Must("", "id", "at most 40 characters are allowed", func(v gjson.Result) bool { return utf8.RuneCountInString(v.Str) <= 40 }),
	}}

	// Of a file there is an id, or its data with a name.
	chatFile       = shape.Members(shape.Required("file", chatFileInline)).Explain("type", "want an object")
	chatFileInline = (&shape.Shape{Is: shape.Object, Members: []shape.Member{shape.Optional("file_id", text)}, Rules: []shape.Rule{
		shape.Must("file_data", "required", "give a file_id, or the data", func(v gjson.Result) bool { return v.Get("file_id").Exists() || v.Get("file_data").Str != "" }),
		shape.Must("filename", "required", "data needs a name", func(v gjson.Result) bool {
			return v.Get("file_id").Exists() || v.Get("file_data").Str == "" || v.Get("filename").Str != ""
		}),
	}}).Explain("type", "want an object")
	// The types of content parts.
	chatPartShapes = map[string]*shape.Shape{
		"text":    shape.Members(shape.Required("text", anyText)),
		"refusal": shape.Members(shape.Required("refusal", anyText)),
		"image_url": shape.Members(shape.Required("image_url", shape.Members(
			shape.Required("url", text),
			shape.Optional("detail", shape.OneOf("auto", "low", "high", "original").Explain("value", "want auto, low, high or original")),
		).Explain("type", "want an object"))),
		"input_audio": shape.Members(shape.Required("input_audio", shape.Members(
			shape.Required("data", text),
			shape.Required("format", &shape.Shape{Is: shape.String, Filled: true, OneOf: []string{"wav", "mp3"}}),
		).Explain("type", "want an object"))),
		"file": chatFile,
	}
	// The parts that only one role may have.
	chatSpeakers = map[string]string{"refusal": "assistant", "image_url": "user", "input_audio": "user", "file": "user"}
)

// Validate checks a body against the rules of OpenAI's Chat Completions
// endpoint, as its reference and its error messages give them. Compatible
// servers are often more lenient, so a body that one of them takes can fail
// here. The rules, by the name that Problem.Rule gives:
//
//	json          one JSON object, not nested deeper than 1000 levels
//	required      a field that must be there is
//	type          a field has the JSON type that it must have
//	value         a field has one of the allowed values
//	empty         no empty arrays, ids, names or URLs
//	role          a known role
//	content       content of a kind that the role may have; null only for an
//	              assistant with calls, refusal or audio
//	part-type     a content part that the role may have
//	id            call ids of 1 to 40 characters, unique in their message
//	name          names within the provider's pattern and length, unique tools
//	limit         at most 128 tools; one limit on the output, at least 1
//	tools         tools or functions, not both; no choice without tools
//	tool-pairing  each call is answered once, directly after its message
//	arguments     (advice) the arguments of a function are JSON
//	last-message  (advice) the request does not end with the model's own turn
//	duplicate     (advice) no field of the body is given twice
//
// Fields that are not named here are not looked at. Within messages the
// problems stand in the order of the messages they point to.
func (Chat) Validate(body []byte) []wire.Problem {
	doc := string(body)
	v := &chatValidator{seen: map[string]gjson.Result{}}
	root := gjson.Parse(doc)
	if err := rawjson.Check(doc); err != nil {
		v.Refuse(0, "", "json", "%v", err)
	} else if !root.IsObject() {
		v.Refuse(0, "", "json", "not a JSON object")
	} else {
		v.body(root)
	}
	return v.Problems()
}

type chatValidator struct {
	shape.Checker
	seen  map[string]gjson.Result // the members of the body
	tools map[string]bool         // declared names
	open  chatOpen
}

func (v *chatValidator) given(name string) bool { return v.seen[name].Exists() }

func (v *chatValidator) body(root gjson.Result) {
	for name, value := range rawjson.Members(root) {
		if v.given(name) {
			v.Advise(value.Index, name, "duplicate", "given twice; servers take one of them")
		}
		v.seen[name] = value
	}
	v.tools = map[string]bool{}
	shape.Each(v.seen["tools"], "", func(_ string, tool gjson.Result) {
		name, _ := chatToolName(tool)
		v.tools[name] = true
	})
	for name, value := range rawjson.Members(root) {
		v.member(name, value)
	}
	for _, name := range [...]string{"model", "messages"} {
		if !v.given(name) {
			v.Refuse(math.MaxInt, name, "required", "this field is missing")
		}
	}
}

// member checks a member of the body.
func (v *chatValidator) member(name string, value gjson.Result) {
	at := value.Index
	alone := func(beside string) {
		if !v.given(beside) {
			v.Refuse(at, name, "tools", "only allowed when %s are given", beside)
		}
	}
	switch name {
	case "model":
		v.Check(at, name, value, text)
	case "messages":
		v.messages(value)
	case "tools":
		v.definitions(name, value, v.tool)
	case "functions":
		v.definitions(name, value, func(path string, entry gjson.Result) string {
			v.Check(at, path, entry, chatDefinition)
			return entry.Get("name").Str
		})
		if v.given("tools") {
			v.Refuse(at, name, "tools", "functions and tools are not allowed together; keep tools")
		}
	case "tool_choice":
		v.toolChoice(value)
	case "parallel_tool_calls":
		alone("tools")
	case "function_call":
		alone("functions")
	case "max_tokens", "max_completion_tokens":
		v.outputLimit(name, value)
	}
}

func (v *chatValidator) outputLimit(name string, value gjson.Result) {
	at := value.Index
	switch {
	case value.Type == gjson.Null:
		return
	case value.Type != gjson.Number || strings.ContainsAny(value.Raw, ".eE"):
		v.Refuse(at, name, "type", "want a whole number, have %s", value.Raw)
	case value.Num < 1:
		v.Refuse(at, name, "limit", "want at least 1, have %s", value.Raw)
	}
	if other := v.seen["max_completion_tokens"]; name == "max_tokens" && other.Type != gjson.Null {
		v.Refuse(at, name, "limit", "not allowed beside max_completion_tokens; keep that one")
	}
}

// typed checks an object by its type against the shape of that type.
func (v *chatValidator) typed(at int, path string, value gjson.Result, shapes map[string]*shape.Shape) bool {
	if !v.Check(at, path, value, &shape.Shape{Is: shape.Object, Members: []shape.Member{shape.Required("type", text)}}) {
		return false
	}
	kind := value.Get("type").Str
	if shapes[kind] == nil {
		v.Refuse(at, path+".type", "value", "%q is neither function nor custom", kind)
		return false
	}
	return v.Check(at, path, value, shapes[kind])
}

// chatToolName returns the name that a tool declares, and the type it has.
func chatToolName(tool gjson.Result) (name, kind string) {
	if kind = tool.Get("type").Str; chatTools[kind] != nil {
		name = tool.Get(kind).Get("name").Str
	}
	return name, kind
}

// chatMaxTools is the provider's limit on tools and on functions.
const chatMaxTools = 128

// definitions walks an array of tools or functions; check returns the name of one.
func (v *chatValidator) definitions(path string, list gjson.Result, check func(path string, entry gjson.Result) string) {
	v.Check(list.Index, path, list, &shape.Shape{Is: shape.Array, Filled: true})
	first := map[string]string{}
	shape.Each(list, path, func(path string, entry gjson.Result) {
		name := check(path, entry)
		if at := first[name]; name != "" && at != "" {
			v.Refuse(list.Index, path, "name", "%q is the name of %s too; names must be unique", name, at)
		} else {
			first[name] = path
		}
	})
	if n := list.Get("#").Int(); n > chatMaxTools {
		v.Refuse(list.Index, path, "limit", "%d entries; at most %d are allowed", n, chatMaxTools)
	}
}

func (v *chatValidator) tool(path string, tool gjson.Result) string {
	v.typed(v.seen["tools"].Index, path, tool, chatTools)
	name, _ := chatToolName(tool)
	return name
}

func (v *chatValidator) toolChoice(value gjson.Result) {
	const path = "tool_choice"
	at := value.Index
	name, kind := chatToolName(value)
	switch {
	case !v.given("tools"):
		v.Refuse(at, path, "tools", "only allowed when tools are given")
	case !value.IsObject():
		v.Check(at, path, value, shape.OneOf("none", "auto", "required"))
	case kind == "allowed_tools":
	case chatTools[kind] == nil:
		v.Refuse(at, path+".type", "value", "%q is none of function, custom, allowed_tools", kind)
	case !v.tools[name]:
		v.Refuse(at, path+"."+kind+".name", "tools", "%q is not among the tools", name)
	}
}
