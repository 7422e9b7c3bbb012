package anthropic

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// toolList checks the declared tools.
// https://docs.anthropic.com/en/api/messages (tools)
func (c *checker) toolList() {
	tools := c.req.tools
	if !tools.Exists() || tools.Type == gjson.Null {
		return
	}
	if !tools.IsArray() {
		c.report(tools.Index, "tools", "tool", "tools is an array")
		return
	}
	seen := map[string]bool{}
	eachOf(tools, func(i int, v gjson.Result) {
		path := "tools[" + strconv.Itoa(i) + "]"
		t := readItem(v)
		if !v.IsObject() {
			c.report(v.Index, path, "tool", "a tool is an object")
			return
		}
		custom := t.kind == "" || t.kind == "custom"
		if t.kind != "mcp_toolset" {
			switch {
			case !named(t.name, 128):
				c.report(v.Index, path+".name", "tool-name", "the name of a tool has 1 to 128 of the characters a-z, A-Z, 0-9, _ and -")
			case seen[t.name.Str]:
				c.report(v.Index, path+".name", "tool-unique", "the tool %q is declared twice", t.name.Str)
			}
			seen[t.name.Str] = true
		}
		if custom && !t.schema.IsObject() {
			c.report(v.Index, path+".input_schema", "tool-schema", "a tool needs the JSON schema of its arguments")
		} else if custom && t.schema.Get("type").Str != "object" {
			c.report(v.Index, path+".input_schema", "tool-schema", "the arguments of a tool are an object: the schema must have type object")
		}
		if t.cache.IsObject() && t.deferred.Type == gjson.True {
			c.report(v.Index, path, "cache-deferred", "a tool that is loaded later cannot carry a cache mark")
		}
		c.cacheMark(t, path)
	})
}

// named reports whether v is a name of the pattern ^[a-zA-Z0-9_-]{1,limit}$.
func named(v gjson.Result, limit int) bool {
	if v.Type != gjson.String || v.Str == "" || len(v.Str) > limit {
		return false
	}
	for i := 0; i < len(v.Str); i++ {
		switch b := v.Str[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return true
}

func (c *checker) toolChoice() {
	r := &c.req
	declared := r.tools.IsArray() && r.tools.Get("#").Int() > 0
	if c.toolUsed && !declared {
		c.advise(r.messages.Index, "tools", "tools-missing", "the messages hold tool blocks and no tool is declared: Bedrock refuses that")
	}
	if !r.toolChoice.IsObject() {
		return
	}
	kind := r.toolChoice.Get("type").Str
	if !declared && kind != "none" {
		c.report(r.toolChoice.Index, "tool_choice", "tool-choice", "tool_choice needs tools")
	}
	if name := r.toolChoice.Get("name").Str; kind == "tool" && declared {
		known := false
		eachOf(r.tools, func(_ int, v gjson.Result) {
			t := readItem(v)
			known = known || t.name.Str == name || t.kind == "mcp_toolset"
		})
		if !known {
			c.report(r.toolChoice.Index, "tool_choice.name", "tool-choice", "no tool is called %q", name)
		}
	}
	if r.enabled() && (kind == "any" || kind == "tool") {
		c.report(r.toolChoice.Index, "tool_choice", "thinking-tool-choice", "thinking cannot be enabled while a tool is forced")
	}
}
