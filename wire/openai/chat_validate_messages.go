package openai

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// chatCheck walks the messages. A missing answer is found later than it is
// reported for, so problems carry the message they belong to.
type chatCheck struct {
	*chatValidator
	at    []int // per problem found here: index of its message
	first int   // problems found before the messages
	open  chatOpen
}

// chatOpen are the calls that the messages now read may answer.
type chatOpen struct {
	message int
	calls   []chatAsked
	byID    map[string]int // position in calls
	legacy  string         // name of a function_call not answered yet
}

type chatAsked struct {
	id       string
	answered bool
}

// chatShape is a message with its fields found in one pass.
type chatShape struct {
	role, content, name, answers, calls, functionCall gjson.Result
	refusal, audio                                    gjson.Result
}

func (v *chatValidator) messages(list gjson.Result) {
	if !list.IsArray() {
		v.refuse("messages", "type", "want an array, have %s", chatTypeName(list))
		return
	}
	c := &chatCheck{chatValidator: v, first: len(v.problems)}
	i, last := -1, ""
	list.ForEach(func(_, m gjson.Result) bool {
		i++
		last = c.message(i, m)
		c.mark(i)
		return true
	})
	if i < 0 {
		v.refuse("messages", "empty", "an empty array is refused; send at least one message")
		return
	}
	c.closeCalls(fmt.Sprintf("the request ends with %s", chatPath(i)))
	if last == "assistant" && len(c.open.calls) == 0 {
		v.advise(chatPath(i), "last-message", "the request ends with the model's own turn; end with a user or tool message")
		c.mark(i)
	}
	c.sort()
}

// mark says which message the problems found since the last mark belong to.
func (c *chatCheck) mark(message int) {
	for len(c.at) < len(c.problems)-c.first {
		c.at = append(c.at, message)
	}
}

// sort brings the problems into the order of their messages.
func (c *chatCheck) sort() {
	order := make([]int, len(c.at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.at[a] - c.at[b] })
	sorted := make([]wire.Problem, len(order))
	for i, from := range order {
		sorted[i] = c.problems[c.first+from]
	}
	copy(c.problems[c.first:], sorted)
}

func (c *chatCheck) settled() bool {
	return !slices.ContainsFunc(c.open.calls, func(a chatAsked) bool { return !a.answered })
}

// closeCalls reports the calls that nothing answered.
func (c *chatCheck) closeCalls(instead string) {
	for j, call := range c.open.calls {
		if !call.answered {
			c.refuse(fmt.Sprintf("%s.tool_calls[%d].id", chatPath(c.open.message), j), "tool-pairing",
				"no tool message answers call %q directly after its message: %s", call.id, instead)
		}
	}
	c.mark(c.open.message)
}

// message checks one element and returns its role.
func (c *chatCheck) message(i int, m gjson.Result) string {
	if !m.IsObject() {
		c.refuse(chatPath(i), "type", "want an object, have %s", chatTypeName(m))
		return ""
	}
	var s chatShape
	m.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "role":
			s.role = value
		case "content":
			s.content = value
		case "name":
			s.name = value
		case "tool_call_id":
			s.answers = value
		case "tool_calls":
			s.calls = value
		case "function_call":
			s.functionCall = value
		case "refusal":
			s.refusal = value
		case "audio":
			s.audio = value
		}
		return true
	})
	role := s.role.Str
	legacy := c.open.legacy
	if role != "tool" {
		if !c.settled() {
			c.closeCalls(fmt.Sprintf("%s has role %q", chatPath(i), role))
		}
		c.open = chatOpen{}
	}
	switch role {
	case "system", "developer", "user":
		c.content(i, s.content, role)
		c.participant(i, s.name)
	case "assistant":
		c.assistant(i, &s)
	case "tool":
		c.content(i, s.content, role)
		c.answer(i, s.answers)
	case "function":
		if s.content.Type != gjson.Null || !s.content.Exists() {
			c.isString(chatPath(i)+".content", s.content)
		}
		path := chatPath(i) + ".name"
		if c.functionName(path, s.name) && s.name.Str != legacy {
			c.refuse(path, "tool-pairing", "the message before has no function_call of %q", s.name.Str)
		}
	default:
		path := chatPath(i) + ".role"
		if c.nonEmpty(path, s.role) {
			c.refuse(path, "role", "%q is none of system, developer, user, assistant, tool, function", role)
		}
	}
	return role
}

// participant checks the optional name of who speaks against the pattern that
// the provider's errors give since 2025, ^[^\s<|\\/>]+$ (before, it was that of
// function names).
func (c *chatCheck) participant(i int, name gjson.Result) {
	path := chatPath(i) + ".name"
	if !name.Exists() || !c.nonEmpty(path, name) {
		return
	}
	forbidden := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`<|\/>`, r) }
	if strings.ContainsFunc(name.Str, forbidden) {
		c.refuse(path, "name", "%q has white space or one of < | \\ / >, which are not allowed", name.Str)
	} else if len([]rune(name.Str)) > 64 {
		c.refuse(path, "name", "longer than 64 characters")
	}
}

func (c *chatCheck) assistant(i int, s *chatShape) {
	said := s.calls.Exists()
	for _, other := range []gjson.Result{s.functionCall, s.refusal, s.audio} {
		said = said || other.Exists() && other.Type != gjson.Null
	}
	if s.content.Type != gjson.Null {
		c.content(i, s.content, "assistant")
	} else if !said {
		c.refuse(chatPath(i)+".content", "content", "missing or null without tool_calls, function_call, refusal or audio")
	}
	c.participant(i, s.name)
	if s.calls.Exists() {
		c.calls(i, s.calls)
	}
	if s.functionCall.Exists() && s.functionCall.Type != gjson.Null {
		path := chatPath(i) + ".function_call"
		if !s.functionCall.IsObject() {
			c.refuse(path, "type", "want an object, have %s", chatTypeName(s.functionCall))
			return
		}
		c.function(path, s.functionCall)
		c.open.legacy = s.functionCall.Get("name").Str
	}
}

func (c *chatCheck) calls(i int, list gjson.Result) {
	path := chatPath(i) + ".tool_calls"
	if !list.IsArray() {
		c.refuse(path, "type", "want an array, have %s", chatTypeName(list))
		return
	}
	c.open.message, c.open.byID = i, map[string]int{}
	list.ForEach(func(_, call gjson.Result) bool {
		// Every entry takes a place, so that positions are right; one that
		// cannot be answered counts as answered, its own problem is enough.
		c.open.calls = append(c.open.calls, c.call(fmt.Sprintf("%s[%d]", path, len(c.open.calls)), call))
		return true
	})
	if len(c.open.calls) == 0 {
		c.refuse(path, "empty", "an empty array is refused; leave the field out")
	}
}

func (c *chatCheck) call(path string, call gjson.Result) chatAsked {
	if !call.IsObject() {
		c.refuse(path, "type", "want an object, have %s", chatTypeName(call))
		return chatAsked{answered: true}
	}
	asked := chatAsked{answered: true}
	if id := call.Get("id"); c.nonEmpty(path+".id", id) {
		asked = chatAsked{id: id.Str}
		if n := len([]rune(id.Str)); n > 40 {
			c.refuse(path+".id", "id", "%d characters; at most 40 are allowed", n)
		}
		if _, twice := c.open.byID[id.Str]; twice {
			c.refuse(path+".id", "id", "%q is the id of an earlier call of this message", id.Str)
			asked.answered = true
		} else {
			c.open.byID[id.Str] = len(c.open.calls)
		}
	}
	kind := call.Get("type")
	if !c.nonEmpty(path+".type", kind) {
		return asked
	}
	body := call.Get("function")
	switch kind.Str {
	case "function":
	case "custom":
		body = call.Get("custom")
	default:
		c.refuse(path+".type", "value", "%q is neither function nor custom", kind.Str)
		return asked
	}
	path += "." + kind.Str
	switch {
	case !body.IsObject():
		c.refuse(path, "type", "want an object, have %s", chatTypeName(body))
	case kind.Str == "custom":
		c.functionName(path+".name", body.Get("name"))
		c.isString(path+".input", body.Get("input"))
	default:
		c.function(path, body)
	}
	return asked
}

// function checks the name and arguments of a function call of either form.
func (c *chatCheck) function(path string, body gjson.Result) {
	c.functionName(path+".name", body.Get("name"))
	args := body.Get("arguments")
	if c.isString(path+".arguments", args) && !rawjson.Valid(args.Str) {
		c.advise(path+".arguments", "arguments", "not valid JSON; the model wrote it so, tools will refuse it")
	}
}

// answer checks which call a tool message answers.
func (c *chatCheck) answer(i int, id gjson.Result) {
	path := chatPath(i) + ".tool_call_id"
	if !c.nonEmpty(path, id) {
		return
	}
	at, asked := c.open.byID[id.Str]
	switch {
	case !asked:
		c.refuse(path, "tool-pairing", "the assistant message before has no call %q", id.Str)
	case c.open.calls[at].answered:
		c.refuse(path, "tool-pairing", "call %q is answered already", id.Str)
	default:
		c.open.calls[at].answered = true
	}
}
