package openai

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// Validate checks a body against the published rules of the Responses API and
// those that its error messages give away. A history that OpenAI keeps
// (previous_response_id, conversation) cannot be seen: then pairs of calls and
// results are not checked.
func (Responses) Validate(body []byte) []wire.Problem {
	text := string(body)
	if err := responsesCheckJSON(text); err != nil {
		return []wire.Problem{{Path: "$", Rule: "json", Message: "not one JSON document: " + err.Error()}}
	}
	root := gjson.Parse(text)
	if !root.IsObject() {
		return []wire.Problem{{Path: "$", Rule: "json", Message: "the body is not an object"}}
	}
	c := responsesChecker{fields: map[string]gjson.Result{}}
	root.ForEach(func(key, value gjson.Result) bool {
		c.fields[key.Str] = value
		return true
	})
	c.body()
	slices.SortStableFunc(c.found, func(a, b responsesFound) int { return a.at - b.at })
	var problems []wire.Problem
	for _, f := range c.found {
		problems = append(problems, f.Problem)
	}
	return problems
}

// responsesFound is a problem and the byte that it is at.
type responsesFound struct {
	at int
	wire.Problem
}

type responsesChecker struct {
	fields map[string]gjson.Result
	found  []responsesFound

	items  []responsesChecked
	remote bool // part of the history is kept by OpenAI
	stored bool // the client does not say store: false
}

func (c *responsesChecker) problem(at int, path, rule, format string, args ...any) {
	c.found = append(c.found, responsesFound{at, wire.Problem{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...)}})
}

func (c *responsesChecker) advice(at int, path, rule, format string, args ...any) {
	c.problem(at, path, rule, format, args...)
	c.found[len(c.found)-1].Advice = true
}

func (c *responsesChecker) given(name string) bool { return c.fields[name].Type != gjson.Null }

func (c *responsesChecker) body() {
	model := c.fields["model"]
	if !(model.Type == gjson.String && model.Str != "") && !(model.Type == gjson.Null && c.given("prompt")) {
		c.problem(model.Index, "model", "required", "name the model, or a prompt that names it")
	}
	c.remote = c.given("previous_response_id") || c.given("conversation")
	c.stored = c.fields["store"].Type != gjson.False
	if c.given("previous_response_id") && c.given("conversation") {
		c.problem(c.fields["conversation"].Index, "conversation", "one-history", "previous_response_id and conversation exclude each other; send one of them")
	}
	for _, name := range []string{"instructions", "previous_response_id"} {
		if v := c.fields[name]; v.Type != gjson.Null && v.Type != gjson.String {
			c.problem(v.Index, name, "type", "want a string")
		}
	}
	if v := c.fields["max_output_tokens"]; v.Type != gjson.Null {
		switch {
		case v.Type != gjson.Number || strings.ContainsAny(v.Raw, ".eE") || v.Int() < 1:
			c.problem(v.Index, "max_output_tokens", "max-output", "want a whole number of tokens, at least 1")
		case v.Int() < 16:
			c.advice(v.Index, "max_output_tokens", "max-output", "most models refuse less than 16")
		}
	}
	c.contextManagement(c.fields["context_management"])
	c.tools(c.fields["tools"], "tools")
	c.input(c.fields["input"])
}

func (c *responsesChecker) contextManagement(list gjson.Result) {
	if list.Type == gjson.Null {
		return
	}
	if !list.IsArray() {
		c.problem(list.Index, "context_management", "type", "want an array")
		return
	}
	n := 0
	list.ForEach(func(_, entry gjson.Result) bool {
		path := "context_management[" + strconv.Itoa(n) + "]"
		n++
		if entry.Get("type").Str == "" {
			c.problem(entry.Index, path+".type", "required", "name the type, such as compaction")
		}
		if v := entry.Get("compact_threshold"); v.Type != gjson.Null && (v.Type != gjson.Number || v.Num < 1000) {
			c.problem(entry.Index, path+".compact_threshold", "compact-threshold", "want at least 1000 tokens")
		}
		return true
	})
}

// responsesToolFields are the fields that tools of a type must have.
var responsesToolFields = map[string][]responsesField{
	"function":    {{"name", "string"}},
	"custom":      {{"name", "string"}},
	"namespace":   {{"name", "string"}, {"tools", "array"}},
	"mcp":         {{"server_label", "string"}},
	"file_search": {{"vector_store_ids", "array"}},
}

func (c *responsesChecker) tools(tools gjson.Result, path string) {
	if tools.Type == gjson.Null {
		return
	}
	if !tools.IsArray() {
		c.problem(tools.Index, path, "type", "want an array")
		return
	}
	seen := map[string]bool{}
	n := 0
	tools.ForEach(func(_, tool gjson.Result) bool {
		at := path + "[" + strconv.Itoa(n) + "]"
		n++
		if !tool.IsObject() {
			c.problem(tool.Index, at, "type", "want a tool object")
			return true
		}
		kind := tool.Get("type").Str
		if kind == "" {
			c.problem(tool.Index, at+".type", "required", "name the type of the tool")
			return true
		}
		c.required(tool, tool.Index, at, responsesToolFields[kind])
		name := tool.Get("name")
		switch kind {
		case "function", "custom", "namespace":
			if name.Type != gjson.String {
				break
			}
			c.name(tool.Index, at+".name", name.Str)
			if seen[name.Str] {
				c.problem(tool.Index, at+".name", "unique-tools", "another tool is called %q; rename one", name.Str)
			}
			seen[name.Str] = true
		}
		switch kind {
		case "function":
			if v := tool.Get("parameters"); v.Type != gjson.Null && !v.IsObject() {
				c.problem(tool.Index, at+".parameters", "type", "want a JSON schema object")
			}
		case "namespace":
			if v := tool.Get("tools"); v.IsArray() {
				c.tools(v, at+".tools")
			}
		}
		return true
	})
}

// name checks a function's name. The pattern is published for both APIs, the
// length for Chat Completions; a longer name may pass here, but not there.
func (c *responsesChecker) name(at int, path, name string) {
	if len(name) < 1 || len(name) > 64 {
		c.problem(at, path, "name", "want 1 to 64 characters, got %d", len(name))
		return
	}
	for i := range len(name) {
		b := name[i] | 0x20
		if !(b >= 'a' && b <= 'z' || name[i] >= '0' && name[i] <= '9' || name[i] == '_' || name[i] == '-') {
			c.problem(at, path, "name", "%q: only letters, digits, _ and - are allowed", name)
			return
		}
	}
}

// responsesField is a required field and the type of its value; "" for any that
// is not null.
type responsesField struct{ name, typ string }

func (c *responsesChecker) required(v gjson.Result, at int, path string, fields []responsesField) {
	for _, f := range fields {
		got := v.Get(f.name)
		if !got.Exists() || got.Type == gjson.Null {
			c.problem(at, path+"."+f.name, "required", "this field is missing")
			continue
		}
		ok := true
		switch f.typ {
		case "string":
			ok = got.Type == gjson.String
		case "array":
			ok = got.IsArray()
		case "object":
			ok = got.IsObject()
		case "bool":
			ok = got.IsBool()
		}
		if !ok {
			c.problem(at, path+"."+f.name, "type", "want %s", f.typ)
		}
	}
}
