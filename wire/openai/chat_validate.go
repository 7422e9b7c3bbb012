package openai

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

// The shapes of parts of the body.
var (
	anyText = &shape.Shape{Is: shape.String}
	text    = &shape.Shape{Is: shape.String, Filled: true}

	chatFunctionName = &shape.Shape{Is: shape.String, Filled: true, Rules: []shape.Rule{
		shape.Must("", "name", "want at most 64 letters, digits, _ and -", func(v gjson.Result) bool { return shape.IsName(v.Str, 64) }),
	}}
	// The declaration in tools of either type, and a legacy function.
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

	// A file has an id, or data with a name.
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
		"image_url": {Is: shape.Object, Image: "image_url.url", Members: []shape.Member{shape.Required("image_url", shape.Members(
			shape.Required("url", text),
			shape.Optional("detail", shape.OneOf("auto", "low", "high", "original").Explain("value", "want auto, low, high or original")),
		).Explain("type", "want an object"))}},
		"input_audio": shape.Members(shape.Required("input_audio", shape.Members(
			shape.Required("data", text),
			shape.Required("format", &shape.Shape{Is: shape.String, Filled: true, OneOf: []string{"wav", "mp3"}}),
		).Explain("type", "want an object"))),
		"file":     chatFile,
		"thinking": shape.Members(shape.Required("thinking", &shape.Shape{Is: shape.String | shape.Array})), // of compatible servers
	}
	chatList    = &shape.Shape{Is: shape.Array, Filled: true}
	chatMembers = []shape.Member{
		shape.Required("model", text), shape.Required("messages", chatList), shape.Optional("tools", chatList), shape.Optional("functions", chatList),
	}

	// The parts that only one role may have.
	chatSpeakers = map[string]string{"refusal": "assistant", "thinking": "assistant", "image_url": "user", "input_audio": "user", "file": "user"}
)

// Validate checks a body against the rules in the reference and the error messages of
// OpenAI's Chat Completions endpoint. Compatible servers are often more lenient, so a body
// that one of them accepts may fail here. The rules, by the name in Problem.Rule:
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
//	compatible    (advice) what only servers other than OpenAI's take: tools and calls that are
//	              neither functions nor custom, an empty list of calls, thinking as content
//	last-message  (advice) the request does not end with the model's own turn
//	duplicate     (advice) no field of the body is given twice
//
// Fields that are not named here are not checked. Problems are in the order of the body.
func (Chat) Validate(body []byte) []wire.Problem {
	v := &chatValidator{tools: map[string]bool{}}
	if v.Open(body, nil, func(name string, value gjson.Result) {
		v.Advise(value.Index, name, "duplicate", "given twice; servers take one of them")
	}) {
		v.body()
	}
	v.CheckSize(wire.Chat, "", len(body))
	return v.Problems()
}

type chatValidator struct {
	shape.Body
	tools map[string]bool // declared names
	open  chatOpen
}

func (v *chatValidator) body() {
	for _, m := range chatMembers {
		value := v.Members[m.Name]
		if value.Exists() {
			v.Check(value.Index, m.Name, value, m.Shape)
		} else if m.Required {
			v.Refuse(math.MaxInt, m.Name, "required", "this field is missing")
		}
	}
	v.definitions("tools", func(path string, tool gjson.Result) string {
		v.typed(v.Members["tools"].Index, path, tool, chatTools)
		name, _ := chatToolName(tool)
		v.tools[name] = true
		return name
	})
	v.definitions("functions", func(path string, entry gjson.Result) string {
		v.Check(v.Members["functions"].Index, path, entry, chatDefinition)
		return entry.Get("name").Str
	})
	tools, functions := v.Value("tools").Exists(), v.Value("functions").Exists()
	v.RefuseIf(tools && functions, "functions", "tools", "functions and tools are not allowed together; keep tools")
	v.RefuseIf(!tools && v.Value("tool_choice").Exists(), "tool_choice", "tools", "only allowed when tools are given")
	v.RefuseIf(!tools && v.Value("parallel_tool_calls").Exists(), "parallel_tool_calls", "tools", "only allowed when tools are given")
	v.RefuseIf(!functions && v.Value("function_call").Exists(), "function_call", "tools", "only allowed when functions are given")
	if tools && v.Value("tool_choice").Exists() {
		v.toolChoice(v.Value("tool_choice"))
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if limit := v.Value(name); limit.Type != gjson.Null {
			whole := limit.Type == gjson.Number && !strings.ContainsAny(limit.Raw, ".eE")
			v.RefuseIf(!whole, name, "type", "want a whole number, have "+limit.Raw)
			v.RefuseIf(whole && limit.Num < 1, name, "limit", "want at least 1, have "+limit.Raw)
		}
	}
	v.RefuseIf(v.Given("max_tokens") && v.Given("max_completion_tokens"), "max_tokens", "limit", "not allowed beside max_completion_tokens; keep that one")
	v.messages(v.Value("messages"))
}

// typed checks an object by its type against the shape of that type.
func (v *chatValidator) typed(at int, path string, value gjson.Result, shapes map[string]*shape.Shape) {
	if !v.Check(at, path, value, &shape.Shape{Is: shape.Object, Members: []shape.Member{shape.Required("type", text)}}) {
		return
	}
	if kind := value.Get("type").Str; shapes[kind] != nil {
		v.Check(at, path, value, shapes[kind])
	} else {
		v.Advise(at, path+".type", "compatible", "%q is neither function nor custom; only servers other than OpenAI's know it", kind)
	}
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

// definitions checks an array of tools or functions; check returns the name of one.
func (v *chatValidator) definitions(path string, check func(path string, entry gjson.Result) string) {
	list := v.Value(path)
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

func (v *chatValidator) toolChoice(choice gjson.Result) {
	name, kind := chatToolName(choice)
	switch {
	case !choice.IsObject():
		v.Check(choice.Index, "tool_choice", choice, shape.OneOf("none", "auto", "required"))
	case kind == "allowed_tools":
	case chatTools[kind] == nil:
		v.Advise(choice.Index, "tool_choice.type", "compatible", "%q is none of function, custom, allowed_tools; only servers other than OpenAI's know it", kind)
	case !v.tools[name]:
		v.Refuse(choice.Index, "tool_choice."+kind+".name", "tools", "%q is not among the tools", name)
	}
}

// chatOpen are the calls that the next tool messages may answer.
type chatOpen struct {
	at     int // of their message
	path   string
	calls  []chatOpenCall
	byID   map[string]int // position in calls
	legacy string         // name of a function_call not answered yet
}

type chatOpenCall struct {
	id       string
	answered bool
}

func (v *chatValidator) messages(list gjson.Result) {
	var last, role string
	shape.Each(list, "messages", func(path string, m gjson.Result) { last, role = path, v.message(path, m) })
	v.closeCalls("the request ends with " + last)
	if role == "assistant" && len(v.open.calls) == 0 {
		v.Advise(list.Index+len(list.Raw), last, "last-message", "the request ends with the model's own turn; end with a user or tool message")
	}
}

// closeCalls reports the calls without an answer. instead says what came in its place.
func (v *chatValidator) closeCalls(instead string) {
	for j, call := range v.open.calls {
		if !call.answered {
			v.Refuse(v.open.at, fmt.Sprintf("%s.tool_calls[%d].id", v.open.path, j), "tool-pairing",
				"no tool message answers call %q directly after its message: %s", call.id, instead)
		}
	}
}

// message checks one element and returns its role.
func (v *chatValidator) message(path string, m gjson.Result) string {
	at := m.Index
	if !v.Check(at, path, m, &shape.Shape{Is: shape.Object}) {
		return ""
	}
	role, legacy := m.Get("role").Str, v.open.legacy
	if role != "tool" {
		v.closeCalls(fmt.Sprintf("%s has role %q", path, role))
		v.open = chatOpen{}
	}
	switch role {
	case "system", "developer", "user":
		v.content(at, path, m, role)
		v.participant(at, path, m)
	case "assistant":
		v.assistant(at, path, m)
	case "tool":
		v.content(at, path, m, role)
		v.answer(at, path, m)
	case "function":
		v.Check(at, path, m, shape.Members(shape.Required("content", &shape.Shape{Is: shape.String | shape.Null})))
		if v.Check(at, path, m, shape.Members(shape.Required("name", chatFunctionName))) && m.Get("name").Str != legacy {
			v.Refuse(at, path+".name", "tool-pairing", "the message before has no function_call of %q", m.Get("name").Str)
		}
	default:
		if v.Check(at, path, m, shape.Members(shape.Required("role", text))) {
			v.Refuse(at, path+".role", "role", "%q is none of system, developer, user, assistant, tool, function", role)
		}
	}
	return role
}

// content checks a content that must not be null.
func (v *chatValidator) content(at int, path string, m gjson.Result, role string) {
	content := m.Get("content")
	path += ".content"
	switch is := shape.TypeOf(content); is {
	case shape.String:
	case shape.Array:
		v.Check(at, path, content, &shape.Shape{Filled: true})
		shape.Each(content, path, func(path string, part gjson.Result) { v.part(at, path, part, role) })
	case 0:
		v.Refuse(at, path, "required", "missing; role %s needs content", role)
	default:
		v.Refuse(at, path, "content", "want a string or an array of parts, have %s", is)
	}
}

func (v *chatValidator) part(at int, path string, part gjson.Result, role string) {
	if !v.Check(at, path, part, shape.Members(shape.Required("type", text))) {
		return
	}
	kind := part.Get("type").Str
	if only := chatSpeakers[kind]; chatPartShapes[kind] == nil || only != "" && only != role {
		v.Refuse(at, path+".type", "part-type", "role %s has no parts of type %q", role, kind)
		return
	}
	if kind == "thinking" {
		v.Advise(at, path+".type", "compatible", "only servers other than OpenAI's take thinking as content")
	}
	v.Check(at, path, part, chatPartShapes[kind])
}

// participant checks the optional name of the speaker against the pattern in the provider's
// errors since 2025, ^[^\s<|\\/>]+$ (before, it was that of function names).
func (v *chatValidator) participant(at int, path string, m gjson.Result) {
	name := m.Get("name")
	path += ".name"
	if !name.Exists() || !v.Check(at, path, name, text) {
		return
	}
	forbidden := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`<|\/>`, r) }
	if strings.ContainsFunc(name.Str, forbidden) {
		v.Refuse(at, path, "name", "%q has white space or one of < | \\ / >, which are not allowed", name.Str)
	} else if utf8.RuneCountInString(name.Str) > 64 {
		v.Refuse(at, path, "name", "longer than 64 characters")
	}
}

func (v *chatValidator) assistant(at int, path string, m gjson.Result) {
	calls := m.Get("tool_calls")
	none := calls.Type == gjson.Null || calls.IsArray() && calls.Get("#").Int() == 0
	said := !none
	for other, v := range rawjson.Members(m) {
		said = said || v.Type != gjson.Null && (other == "function_call" || other == "refusal" || other == "audio" || chatReasons[other])
	}
	if m.Get("content").Type != gjson.Null {
		v.content(at, path, m, "assistant")
	} else if !said {
		v.Refuse(at, path+".content", "content", "missing or null without tool_calls, function_call, refusal or audio")
	}
	v.participant(at, path, m)
	switch {
	case !calls.Exists():
	case none:
		v.Advise(at, path+".tool_calls", "compatible", "empty; OpenAI wants at least one call or no list")
	default:
		v.calls(at, path, calls)
	}
	if call := m.Get("function_call"); call.Type != gjson.Null {
		if v.Check(at, path+".function_call", call, chatFunctionCall); call.IsObject() {
			v.arguments(at, path+".function_call", call)
			v.open.legacy = call.Get("name").Str
		}
	}
}

func (v *chatValidator) calls(at int, message string, list gjson.Result) {
	path := message + ".tool_calls"
	v.Check(at, path, list, &shape.Shape{Is: shape.Array, Filled: true})
	v.open.at, v.open.path, v.open.byID = at, message, map[string]int{}
	// Every entry takes a place, so that positions are right. One that cannot be answered
	// counts as answered: its own problem is enough.
	shape.Each(list, path, func(path string, call gjson.Result) { v.open.calls = append(v.open.calls, v.call(at, path, call)) })
}

func (v *chatValidator) call(at int, path string, call gjson.Result) chatOpenCall {
	id := call.Get("id").Str
	asked := chatOpenCall{id: id, answered: !call.IsObject() || id == ""}
	if call.IsObject() {
		v.Check(at, path, call, shape.Members(shape.Required("id", chatCallID)))
	}
	if _, twice := v.open.byID[id]; twice {
		v.Refuse(at, path+".id", "id", "%q is the id of an earlier call of this message", id)
		asked.answered = true
	} else if !asked.answered {
		v.open.byID[id] = len(v.open.calls)
	}
	if v.typed(at, path, call, chatCalls); call.Get("type").Str == "function" {
		v.arguments(at, path+".function", call.Get("function"))
	}
	return asked
}

// arguments advises on those of a function call that are no JSON.
func (v *chatValidator) arguments(at int, path string, call gjson.Result) {
	if args := call.Get("arguments"); args.Type == gjson.String && !rawjson.Valid(args.Str) {
		v.Advise(at, path+".arguments", "arguments", "not valid JSON; the model wrote it so, tools will refuse it")
	}
}

// answer checks which call a tool message answers.
func (v *chatValidator) answer(at int, path string, m gjson.Result) {
	if !v.Check(at, path, m, shape.Members(shape.Required("tool_call_id", text))) {
		return
	}
	path, id := path+".tool_call_id", m.Get("tool_call_id").Str
	i, asked := v.open.byID[id]
	switch {
	case !asked:
		v.Refuse(at, path, "tool-pairing", "the assistant message before has no call %q", id)
	case v.open.calls[i].answered:
		v.Refuse(at, path, "tool-pairing", "call %q is answered already", id)
	default:
		v.open.calls[i].answered = true
	}
}
