package openai

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

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
