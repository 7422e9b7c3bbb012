package openai

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// chatMaxTools is the provider's limit on tools and on functions.
const chatMaxTools = 128

// chatToolName returns the name that a tool declares, and the type it has.
func chatToolName(tool gjson.Result) (name, kind string) {
	kind = tool.Get("type").Str
	if kind == "function" || kind == "custom" {
		name = tool.Get(kind).Get("name").Str
	}
	return name, kind
}

func chatDeclared(tools gjson.Result) map[string]bool {
	names := map[string]bool{}
	if tools.IsArray() {
		tools.ForEach(func(_, t gjson.Result) bool {
			name, _ := chatToolName(t)
			names[name] = true
			return true
		})
	}
	return names
}

// definitions walks an array of tools or functions.
func (v *chatValidator) definitions(path string, list gjson.Result, check func(path string, entry gjson.Result) string) {
	if !list.IsArray() {
		v.refuse(path, "type", "want an array, have %s", chatTypeName(list))
		return
	}
	seen := map[string]int{}
	n := 0
	list.ForEach(func(_, entry gjson.Result) bool {
		at := fmt.Sprintf("%s[%d]", path, n)
		if !entry.IsObject() {
			v.refuse(at, "type", "want an object, have %s", chatTypeName(entry))
		} else if name := check(at, entry); name != "" {
			if first, twice := seen[name]; twice {
				v.refuse(at, "name", "%q is the name of %s[%d] too; names must be unique", name, path, first)
			} else {
				seen[name] = n
			}
		}
		n++
		return true
	})
	switch {
	case n == 0:
		v.refuse(path, "empty", "an empty array is refused; leave the field out")
	case n > chatMaxTools:
		v.refuse(path, "limit", "%d entries; at most %d are allowed", n, chatMaxTools)
	}
}

func (v *chatValidator) toolList(list gjson.Result) {
	v.definitions("tools", list, func(path string, tool gjson.Result) string {
		kind := tool.Get("type")
		if !v.nonEmpty(path+".type", kind) {
			return ""
		}
		if kind.Str != "function" && kind.Str != "custom" {
			v.refuse(path+".type", "value", "%q is neither function nor custom", kind.Str)
			return ""
		}
		path += "." + kind.Str
		body := tool.Get(kind.Str)
		if !body.IsObject() {
			v.refuse(path, "type", "want an object, have %s", chatTypeName(body))
			return ""
		}
		return v.definition(path, body)
	})
}

func (v *chatValidator) functionList(list gjson.Result) {
	v.definitions("functions", list, v.definition)
}

// definition checks what tools and legacy functions have in common and returns
// the name, or "" when it has none that could be compared.
func (v *chatValidator) definition(path string, body gjson.Result) string {
	name := body.Get("name")
	ok := v.functionName(path+".name", name)
	if d := body.Get("description"); d.Exists() && d.Type != gjson.String {
		v.refuse(path+".description", "type", "want a string, have %s", chatTypeName(d))
	}
	if p := body.Get("parameters"); p.Exists() {
		if !p.IsObject() {
			v.refuse(path+".parameters", "type", "want a JSON schema object, have %s", chatTypeName(p))
		} else if t := p.Get("type"); t.Exists() && t.Str != "object" {
			v.refuse(path+".parameters.type", "value", "the schema of the arguments must be of type object, have %s", t.Raw)
		}
	}
	if s := body.Get("strict"); s.Exists() && s.Type != gjson.Null && !s.IsBool() {
		v.refuse(path+".strict", "type", "want a boolean, have %s", chatTypeName(s))
	}
	if !ok {
		return ""
	}
	return name.Str
}

func (v *chatValidator) toolChoice(value gjson.Result) {
	const path = "tool_choice"
	if _, ok := v.seen["tools"]; !ok {
		v.refuse(path, "tools", "only allowed when tools are given")
		return
	}
	switch {
	case value.Type == gjson.String:
		if value.Str != "none" && value.Str != "auto" && value.Str != "required" {
			v.refuse(path, "value", "%q is none of none, auto, required", value.Str)
		}
	case value.IsObject():
		name, kind := chatToolName(value)
		switch {
		case kind == "allowed_tools":
		case kind != "function" && kind != "custom":
			v.refuse(path+".type", "value", "%q is none of function, custom, allowed_tools", kind)
		case !v.tools[name]:
			v.refuse(path+"."+kind+".name", "tools", "%q is not among the tools", name)
		}
	default:
		v.refuse(path, "type", "want a string or an object, have %s", chatTypeName(value))
	}
}
