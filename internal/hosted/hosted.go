// Package hosted reads which blocks of a provider are calls, or results, of tools that the
// provider runs itself, and which calls of the client a program inside the provider made.
package hosted

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// row is one type of block: where in its JSON what thread.Hosted holds is found. Blocks that hold
// call and result at once (web_search_call) have no row.
type row struct {
	api, kind string // a kind that begins with * is the end of the type's name
	result    bool
	id        string // path of the id that call and result share
	tool      string // path of the tool's name; = if the type is the name
	example   string
}

// parents are the paths of the call whose program made a block, in each API.
var parents = map[string]string{wire.Anthropic: "caller.tool_id", wire.Responses: "caller.caller_id"}

var rows = []row{
	{wire.Anthropic, "server_tool_use", false, "id", "name", `{"type":"server_tool_use","id":"1","name":"web_fetch","input":{"url":"https://a.example"}}`},
	{wire.Anthropic, "mcp_tool_use", false, "id", "name", `{"type":"mcp_tool_use","id":"1","name":"find","server_name":"notes","input":{}}`},
	{wire.Anthropic, "*_tool_result", true, "tool_use_id", "", `{"type":"code_execution_tool_result","tool_use_id":"1","content":{"type":"code_execution_result","stdout":"3"}}`},
	{wire.Responses, "program", false, "call_id", "=", `{"type":"program","id":"p","call_id":"1","code":"text(1)"}`},
	{wire.Responses, "*_call", false, "call_id", "=", `{"type":"multi_agent_call","call_id":"1","action":"spawn"}`},
	{wire.Responses, "*_output", true, "call_id", "", `{"type":"program_output","id":"o","call_id":"1","result":"1"}`},
	{wire.Gemini, "toolCall", false, "toolCall.id", "toolCall.toolType", `{"toolCall":{"id":"1","toolType":"GOOGLE_SEARCH_WEB","args":{}}}`},
	{wire.Gemini, "toolResponse", true, "toolResponse.id", "toolResponse.toolType", `{"toolResponse":{"id":"1","toolType":"GOOGLE_SEARCH_WEB","response":{}}}`},
}

// Instruction reports whether a block that is the developer's stands among the model's: it changes the
// tools for all that follows.
func Instruction(api, kind string) bool { return api == wire.Responses && kind == "additional_tools" }

// Of returns what a block of an API has to do with a hosted call. raw is its JSON.
func Of(api, kind, raw string) thread.Hosted {
	for i := range rows {
		r := &rows[i]
		if r.api != api || r.kind != kind && (r.kind[0] != '*' || !strings.HasSuffix(kind, r.kind[1:])) {
			continue
		}
		id := gjson.Get(raw, r.id).Str
		if id == "" {
			return thread.Hosted{}
		}
		tool := strings.TrimSuffix(kind, "_call")
		if r.tool != "=" {
			tool = gjson.Get(raw, r.tool).Str
		}
		return thread.Hosted{Call: id, Result: r.result, Tool: tool, Parent: Parent(api, raw)}
	}
	return thread.Hosted{}
}

// Parent returns the id of the hosted call whose program made the call in raw, or "".
func Parent(api, raw string) string {
	path := parents[api]
	if path == "" || !strings.Contains(raw, `"caller"`) {
		return ""
	}
	return gjson.Get(raw, path).Str
}
