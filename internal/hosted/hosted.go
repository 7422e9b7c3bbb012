// Package hosted reads which blocks of a provider are calls, or results, of tools that the
// provider runs itself, and which calls of the client a program inside the provider made.
package hosted

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// row is one type of block: where in its JSON what thread.Opaque says of hosted calls is found.
// Blocks that hold call and result at once (web_search_call) have no id there, or no row.
type row struct {
	api, kind string // a kind that begins with * is the end of the type's name
	answers   bool
	id        string // path of the id that call and result share
	tool      string // path of the tool's name; = if the type is the name
	example   string
}

// parents are the paths of the call whose program made a block, in each API.
var parents = map[string]string{wire.Anthropic: "caller.tool_id", wire.Responses: "caller.caller_id"}

// standing are the blocks that hold for all that follows: tools that are added or loaded, settings of the
// answers, and what is left of a conversation that was compacted by the provider, which nobody else can
// read. The path is of what there must be in the block.
var standing = map[[2]string]string{
	{wire.Responses, "additional_tools"}:        "tools",
	{wire.Responses, "configuration_update"}:    "type",
	{wire.Responses, "compaction"}:              "type",
	{wire.Responses, "tool_search_output"}:      "tools.0",
	{wire.Anthropic, "tool_search_tool_result"}: "content.tool_references.0",
	{wire.Anthropic, "tool_reference"}:          "tool_name",
}

var rows = []row{
	{wire.Anthropic, "server_tool_use", false, "id", "name", `{"type":"server_tool_use","id":"1","name":"web_fetch","input":{"url":"https://a.example"}}`},
	{wire.Anthropic, "mcp_tool_use", false, "id", "name", `{"type":"mcp_tool_use","id":"1","name":"find","server_name":"notes","input":{}}`},
	{wire.Anthropic, "*_tool_result", true, "tool_use_id", "", `{"type":"code_execution_tool_result","tool_use_id":"1","content":{"type":"code_execution_result","stdout":"3"}}`},
	{wire.Responses, "program", false, "call_id", "=", `{"type":"program","id":"p","call_id":"1","code":"text(1)"}`},
	{wire.Responses, "*_call", false, "call_id", "=", `{"type":"multi_agent_call","call_id":"1","action":"spawn"}`},
	{wire.Responses, "*_output", true, "call_id", "", `{"type":"program_output","id":"o","call_id":"1","result":"1"}`},
	{wire.Gemini, "executableCode", false, "executableCode.id", "=", `{"executableCode":{"id":"1","language":"PYTHON","code":"f()"}}`},
	{wire.Gemini, "codeExecutionResult", true, "codeExecutionResult.id", "", `{"codeExecutionResult":{"id":"1","outcome":"OUTCOME_OK","output":"1"}}`},
	{wire.Gemini, "toolCall", false, "toolCall.id", "toolCall.toolType", `{"toolCall":{"id":"1","toolType":"GOOGLE_SEARCH_WEB","args":{}}}`},
	{wire.Gemini, "toolResponse", true, "toolResponse.id", "toolResponse.toolType", `{"toolResponse":{"id":"1","toolType":"GOOGLE_SEARCH_WEB","response":{}}}`},
}

// Mark sets what a block's JSON says about hosted calls and instructions.
func Mark(o thread.Opaque) thread.Opaque {
	path, stands := standing[[2]string{o.API, o.Kind}]
	o.Instruction = stands && gjson.Get(o.Raw, path).Exists()
	for i := range rows {
		r := &rows[i]
		if r.api != o.API || r.kind != o.Kind && (r.kind[0] != '*' || !strings.HasSuffix(o.Kind, r.kind[1:])) {
			continue
		}
		if o.Call = gjson.Get(o.Raw, r.id).Str; o.Call == "" {
			break
		}
		o.Answers, o.Parent, o.Tool = r.answers, Parent(o.API, o.Raw), strings.TrimSuffix(o.Kind, "_call")
		if r.tool != "=" {
			o.Tool = gjson.Get(o.Raw, r.tool).Str
		}
		break
	}
	return o
}

// Parent returns the id of the hosted call whose program made the call in raw, or "".
func Parent(api, raw string) string {
	path := parents[api]
	if path == "" || !strings.Contains(raw, `"caller"`) {
		return ""
	}
	return gjson.Get(raw, path).Str
}
