// Package hosted reads which blocks of a provider are calls, or results, of tools that the
// provider runs itself, and which calls of the client a program inside the provider made.
package hosted

import (
	"cmp"
	"slices"
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

// loadings are the paths of the tools in the blocks that load them.
var loadings = map[[2]string]string{
	{wire.Responses, "tool_search_output"}:      "tools",
	{wire.Responses, "tools"}:                   "@this", // of one that the client ran
	{wire.Anthropic, "tool_search_tool_result"}: "content.tool_references",
	{wire.Anthropic, "tool_reference"}:          "tool_name",
}

// Loads returns the tools that a message loads, by their JSON; none if it holds something else for all that follows.
func Loads(m *thread.Message) (tools []string) {
	for _, p := range m.Parts {
		parts := []thread.Part{p}
		if r, ok := p.(thread.ToolResult); ok {
			parts = r.Content
		}
		for _, p := range parts {
			o, _ := p.(thread.Opaque)
			path := loadings[[2]string{o.API, o.Kind}]
			switch {
			case o.Instruction && path == "":
				return nil
			case o.Instruction:
				for _, t := range gjson.Get(o.Raw, path).Array() {
					tools = append(tools, t.Raw)
				}
			}
		}
	}
	return tools
}

// toolChange is a type of block that changes the set of tools: where the tools are in it.
type toolChange struct {
	api, kind, tools string
	adds             bool
}

var toolChanges = []toolChange{
	{wire.Anthropic, "tool_addition", "tool", true},
	{wire.Anthropic, "tool_removal", "tool", false},
	{wire.Responses, "additional_tools", "tools", true},
}

// ToolChange is a tool that a message adds to those of the conversation or takes away.
type ToolChange struct {
	Tool string // server and name; a namespace, whose later form need not hold all of the earlier, and what has no name, are told by their JSON
	Set  string // the Tool that stands for all tools of its server, "" for none
	Form string // how it is named: by reference, or with its definition, without which later references name nothing
	Adds bool
}

// CompactedTools returns the changes of the tools that a compaction of the provider's brings along, as the parts
// of an instruction: whoever hides the block puts them in its place. One that failed brings none.
func CompactedTools(m *thread.Message) (changes []thread.Part) {
	for _, p := range m.Parts {
		o, _ := p.(thread.Opaque)
		if o.API != wire.Anthropic || o.Kind != "compaction" || gjson.Get(o.Raw, "content").Str == "" {
			continue
		}
		for _, c := range gjson.Get(o.Raw, "tool_changes").Array() {
			changes = append(changes, thread.Opaque{Kind: c.Get("type").Str, Source: thread.Source{API: o.API, Raw: c.Raw}})
		}
	}
	return changes
}

// ToolChanges returns the changes of the set of tools that a message holds, and whether it holds nothing else.
func ToolChanges(m *thread.Message) (all []ToolChange, only bool) {
	only = true
	for _, p := range slices.Concat(CompactedTools(m), m.Parts) {
		o, _ := p.(thread.Opaque)
		i := slices.IndexFunc(toolChanges, func(c toolChange) bool { return c.api == o.API && c.kind == o.Kind })
		if i < 0 {
			only = false
			continue
		}
		tools := gjson.Get(o.Raw, toolChanges[i].tools)
		for _, t := range tools.Array() {
			d := t
			if inline := t.Get("definition"); inline.Exists() {
				d = inline
			}
			c := ToolChange{Tool: cmp.Or(d.Get("tool_name").Str, d.Get("name").Str), Form: t.Get("type").Str, Adds: toolChanges[i].adds}
			if server := cmp.Or(d.Get("server_name").Str, d.Get("mcp_server_name").Str); server != "" {
				c.Set = server + "/"
				c.Tool = c.Set + c.Tool
			}
			if c.Tool == "" || t.Get("tools").Exists() {
				c.Tool = t.Raw
			}
			all = append(all, c)
		}
	}
	return all, only
}

var rows = []row{
	{wire.Anthropic, "server_tool_use", false, "id", "name", `{"type":"server_tool_use","id":"1","name":"web_fetch","input":{"url":"https://a.example"}}`},
	{wire.Anthropic, "*_tool_use", false, "id", "name", `{"type":"mcp_tool_use","id":"1","name":"find","server_name":"notes","input":{}}`},
	{wire.Anthropic, "*_tool_result", true, "tool_use_id", "", `{"type":"code_execution_tool_result","tool_use_id":"1","content":{"type":"code_execution_result","stdout":"3"}}`},
	{wire.Responses, "program", false, "call_id", "=", `{"type":"program","id":"p","call_id":"1","code":"text(1)"}`},
	{wire.Responses, "*_call", false, "call_id", "=", `{"type":"multi_agent_call","call_id":"1","action":"spawn"}`},
	{wire.Responses, "*_output", true, "call_id", "", `{"type":"program_output","id":"o","call_id":"1","result":"1"}`},
	{wire.Gemini, "executableCode", false, "executableCode.id", "=", `{"executableCode":{"id":"1","language":"PYTHON","code":"f()"}}`},
	{wire.Gemini, "codeExecutionResult", true, "codeExecutionResult.id", "", `{"codeExecutionResult":{"id":"1","outcome":"OUTCOME_OK","output":"1"}}`},
	{wire.Gemini, "toolCall", false, "toolCall.id", "toolCall.toolType", `{"toolCall":{"id":"1","toolType":"GOOGLE_SEARCH_WEB","args":{}}}`},
	{wire.Gemini, "toolResponse", true, "toolResponse.id", "toolResponse.toolType", `{"toolResponse":{"id":"1","toolType":"GOOGLE_SEARCH_WEB","response":{}}}`},
}

// isOf reports whether a type is that of a row, of which * stands for any beginning: APIs add such types.
func isOf(kind, row string) bool {
	end, any := strings.CutPrefix(row, "*")
	return kind == row || any && strings.HasSuffix(kind, end)
}

// Mark sets what a block's JSON says about hosted calls and instructions.
func Mark(o thread.Opaque) thread.Opaque {
	path, stands := standing[[2]string{o.API, o.Kind}]
	o.Instruction = stands && gjson.Get(o.Raw, path).Exists()
	for i := range rows {
		r := &rows[i]
		if r.api != o.API || !isOf(o.Kind, r.kind) {
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

// said is where a type of block says what it was asked, and what came out. A block without output is a
// call alone, or a result alone: its text is the output.
type said struct{ api, kind, tool, input, output string }

var sayings = []said{
	{wire.Anthropic, "*_tool_use", "", "input", ""},
	{wire.Responses, "program", "", "code", ""},
	{wire.Responses, "multi_agent_call", "", "arguments", ""},
	{wire.Responses, "web_search_call", "", "action", "action.sources.#.url"},
	{wire.Responses, "file_search_call", "", "queries", "results.#.text"},
	{wire.Responses, "code_interpreter_call", "", "code", "outputs.#.logs"},
	{wire.Responses, "image_generation_call", "", "revised_prompt", "status"},
	{wire.Responses, "mcp_call", "name", "arguments", "output"},
	{wire.Gemini, "toolCall", "", "toolCall.args", ""},
	{wire.Gemini, "executableCode", "", "executableCode.code", ""},
}

// failures are the paths that hold something only where a hosted call failed.
var failures = []string{"is_error", "error", "content.error_code", "content.return_code", "toolResponse.response.error"}

// Unfold returns messages in which calls and results of the provider are calls and results like those
// of the client, for readers: a result follows the message that holds it, under the same id. Without
// any it is the same slice.
func Unfold(messages []thread.Message) []thread.Message {
	names := map[string]string{}
	return replaceEach(messages, func(whole *thread.Message) (out []thread.Message) {
		parts, behind := unfold(whole, names)
		if parts == nil {
			return nil
		}
		m := *whole
		m.Parts = parts
		out = append(out, m)
		for _, b := range behind {
			m.Role, m.Kind, m.Parts = b.Role, b.Kind, b.Parts
			out = append(out, m)
		}
		return out
	})
}

// replaceEach returns messages with others in the place of those for which by returns any. Without any it is the
// same slice.
func replaceEach(messages []thread.Message, by func(*thread.Message) []thread.Message) []thread.Message {
	var out []thread.Message // nil until the first
	for i := range messages {
		others := by(&messages[i])
		if others != nil && out == nil {
			out = append(make([]thread.Message, 0, len(messages)+8), messages[:i]...)
		}
		switch {
		case others != nil:
			out = append(out, others...)
		case out != nil:
			out = append(out, messages[i])
		}
	}
	if out == nil {
		return messages
	}
	return out
}

// unfold returns the parts of a message of the model without hosted results and texts of other agents, and
// these; nil if it has none.
func unfold(m *thread.Message, names map[string]string) (parts []thread.Part, behind []thread.Message) {
	for n, p := range m.Parts {
		o, opaque := p.(thread.Opaque)
		s := saying(&o)
		text := o.Text
		if t, ok := p.(thread.Text); ok {
			text = t.Text
		}
		relayed := m.Role == thread.Assistant && o.Call == "" && text != "" && Author(p) == thread.ByAgent
		if !relayed && (!opaque || m.Role != thread.Assistant || o.Call == "" && s == nil) {
			if parts != nil {
				parts = append(parts, p)
			}
			continue
		}
		if parts == nil {
			parts = append(make([]thread.Part, 0, len(m.Parts)), m.Parts[:n]...)
		}
		if relayed {
			behind = append(behind, thread.Message{Role: thread.User, Kind: thread.Relayed, Parts: []thread.Part{thread.Text{Text: text}}})
			continue
		}
		id := cmp.Or(o.Call, gjson.Get(o.Raw, "id").Str)
		if !o.Answers {
			call := thread.ToolCall{ID: id, Name: cmp.Or(o.Tool, strings.TrimSuffix(o.Kind, "_call")), Arguments: o.Text, Parent: o.Parent}
			if s != nil {
				call.Name, call.Arguments = cmp.Or(gjson.Get(o.Raw, cmp.Or(s.tool, "-")).Str, call.Name), gjson.Get(o.Raw, s.input).String()
			}
			names[id] = call.Name
			parts = append(parts, call)
		}
		if o.Answers || s != nil && s.output != "" {
			behind = append(behind, thread.Message{Role: thread.Tool, Kind: m.Kind, Parts: []thread.Part{resultOf(&o, s, id, names[id])}})
		}
	}
	return parts, behind
}

func saying(o *thread.Opaque) *said {
	for i := range sayings {
		if s := &sayings[i]; s.api == o.API && isOf(o.Kind, s.kind) {
			return s
		}
	}
	return nil
}

func resultOf(o *thread.Opaque, s *said, id, tool string) thread.ToolResult {
	r := thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Success, Author: cmp.Or(Author(*o), thread.ByProvider), Program: o.Parent != ""}
	text := cmp.Or(o.Text, gjson.Get(o.Raw, "toolResponse.response").Raw)
	if s != nil {
		var lines []string
		gjson.Get(o.Raw, s.output).ForEach(func(_, v gjson.Result) bool {
			lines = append(lines, v.String())
			return true
		})
		text = strings.Join(lines, "\n")
	}
	for _, path := range failures {
		if v := gjson.Get(o.Raw, path); v.Exists() && v.Type != gjson.Null && v.Type != gjson.False && v.Raw != "0" {
			r.Outcome = thread.Failure
			if s != nil && text == "" {
				text = v.String()
			}
		}
	}
	if outcome := gjson.Get(o.Raw, "codeExecutionResult.outcome").Str; outcome != "" && outcome != "OUTCOME_OK" {
		r.Outcome = thread.Failure
	}
	r.Content = []thread.Part{thread.Text{Text: text}}
	return r
}

// authored are the blocks whose type says who wrote them.
var authored = map[[2]string]thread.Author{
	{wire.Responses, "multi_agent_call_output"}: thread.ByAgent,
	{wire.Anthropic, "fallback"}:                thread.ByProvider,
	{wire.Anthropic, "compaction"}:              thread.ByCompaction,
	{wire.Responses, "compaction"}:              thread.ByCompaction,
}

// rootAgent is the name of the agent whose conversation a request of Responses is.
const rootAgent = "/" + "root"

// Author returns who wrote a part of a message of the model, if not the model: the provider made the results
// of its own tools, and another agent what Responses names one for. It is empty for all others.
func Author(part thread.Part) thread.Author {
	from := part.From()
	o, opaque := part.(thread.Opaque)
	if by := authored[[2]string{from.API, o.Kind}]; opaque && by != "" {
		return by
	}
	if from.API == wire.Responses && strings.Contains(from.Raw, rootAgent) {
		path := "agent.agent_name"
		if o.Kind == "agent_message" {
			path = "author"
		}
		if name := gjson.Get(from.Raw, path).Str; name != "" && name != rootAgent {
			return thread.ByAgent
		}
	}
	if opaque && o.Answers {
		return thread.ByProvider
	}
	return ""
}
