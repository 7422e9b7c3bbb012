package openai

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
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
	v := &chatValidator{}
	if err := rawjson.Check(doc); err != nil {
		v.refuse("", "json", "%v", err)
		return v.problems
	}
	root := gjson.Parse(doc)
	if !root.IsObject() {
		v.refuse("", "json", "not a JSON object")
		return v.problems
	}
	v.body(root)
	return v.problems
}

type chatValidator struct {
	problems []wire.Problem
	seen     map[string]gjson.Result
	tools    map[string]bool // declared names
}

func (v *chatValidator) refuse(path, rule, format string, args ...any) {
	v.problems = append(v.problems, wire.Problem{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

func (v *chatValidator) advise(path, rule, format string, args ...any) {
	v.problems = append(v.problems, wire.Problem{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...), Advice: true})
}

func (v *chatValidator) body(root gjson.Result) {
	v.seen = map[string]gjson.Result{}
	root.ForEach(func(key, value gjson.Result) bool {
		if _, twice := v.seen[key.Str]; twice {
			v.advise(key.Str, "duplicate", "given twice; servers take one of them")
		}
		v.seen[key.Str] = value
		return true
	})
	v.tools = chatDeclared(v.seen["tools"])
	root.ForEach(func(key, value gjson.Result) bool {
		v.field(key.Str, value)
		return true
	})
	for _, name := range [...]string{"model", "messages"} {
		if _, ok := v.seen[name]; !ok {
			v.refuse(name, "required", "missing")
		}
	}
}

func (v *chatValidator) field(name string, value gjson.Result) {
	switch name {
	case "model":
		v.nonEmpty("model", value)
	case "messages":
		v.messages(value)
	case "tools":
		v.toolList(value)
	case "functions":
		v.functionList(value)
		if _, both := v.seen["tools"]; both {
			v.refuse("functions", "tools", "functions and tools are not allowed together; keep tools")
		}
	case "tool_choice":
		v.toolChoice(value)
	case "parallel_tool_calls":
		if _, ok := v.seen["tools"]; !ok {
			v.refuse(name, "tools", "only allowed when tools are given")
		}
	case "function_call":
		if _, ok := v.seen["functions"]; !ok {
			v.refuse(name, "tools", "only allowed when functions are given")
		}
	case "max_tokens", "max_completion_tokens":
		v.outputLimit(name, value)
	}
}

func (v *chatValidator) outputLimit(name string, value gjson.Result) {
	if value.Type == gjson.Null {
		return
	}
	if value.Type != gjson.Number || strings.ContainsAny(value.Raw, ".eE") {
		v.refuse(name, "type", "want an integer, have %s", chatTypeName(value))
	} else if value.Num < 1 {
		v.refuse(name, "limit", "want at least 1, have %s", value.Raw)
	}
	if other := v.seen["max_completion_tokens"]; name == "max_tokens" && other.Exists() && other.Type != gjson.Null {
		v.refuse(name, "limit", "not allowed beside max_completion_tokens; keep that one")
	}
}

// nonEmpty checks for a string that is not empty.
func (v *chatValidator) nonEmpty(path string, value gjson.Result) bool {
	switch {
	case !value.Exists():
		v.refuse(path, "required", "missing")
	case value.Type != gjson.String:
		v.refuse(path, "type", "want a string, have %s", chatTypeName(value))
	case value.Str == "":
		v.refuse(path, "empty", "the string is empty")
	default:
		return true
	}
	return false
}

// isString checks for a string, which may be empty.
func (v *chatValidator) isString(path string, value gjson.Result) bool {
	switch {
	case !value.Exists():
		v.refuse(path, "required", "missing")
	case value.Type != gjson.String:
		v.refuse(path, "type", "want a string, have %s", chatTypeName(value))
	default:
		return true
	}
	return false
}

// functionName checks a name against ^[a-zA-Z0-9_-]{1,64}$.
func (v *chatValidator) functionName(path string, value gjson.Result) bool {
	if !v.nonEmpty(path, value) {
		return false
	}
	for _, c := range value.Str {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", c) {
			v.refuse(path, "name", "%q has %q; only letters, digits, _ and - are allowed", value.Str, c)
			return false
		}
	}
	if len(value.Str) > 64 {
		v.refuse(path, "name", "%d characters; at most 64 are allowed", len(value.Str))
		return false
	}
	return true
}

// chatTypeName names a JSON type for people.
func chatTypeName(v gjson.Result) string {
	switch {
	case !v.Exists():
		return "nothing"
	case v.Type == gjson.Null:
		return "null"
	case v.Type == gjson.String:
		return "a string"
	case v.Type == gjson.Number:
		return "a number"
	case v.Type == gjson.JSON && v.IsArray():
		return "an array"
	case v.Type == gjson.JSON:
		return "an object"
	}
	return "a boolean"
}
