package openai

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// responsesItem is an input item, with its members.
type responsesItem struct {
	rawjson.Fields
	raw, typ string
}

// responsesReader turns items into messages. It collects items of the model until another
// item comes.
type responsesReader struct {
	text     string // the document that the items are in
	messages []thread.Message
	system   []prompt.System
	count    int // items seen

	calls map[string]string // names of the calls so far, by call id
	// answered are, in an answer, the ids of the calls whose outputs are in it too; nil in a request.
	answered map[string]bool

	model      []thread.Part // parts of the response being read
	collecting bool
	start, end int // its text
	first      int // its first item
}

func (r *responsesReader) read(items gjson.Result) error {
	var room rawjson.Fields // of all items in turn
	for item := range rawjson.Items(items) {
		if !item.IsObject() {
			return responsesFormat.Errorf("input["+strconv.Itoa(r.count)+"]", "want an item object")
		}
		it := responsesItem{rawjson.FieldsOf(item, room[:0]), item.Raw, ""}
		if it.typ = it.Str("type"); it.typ == "" && it.Str("role") != "" {
			it.typ = "message"
		}
		r.item(it, item.Index)
		room = it.Fields
		r.count++
	}
	r.flush()
	return nil
}

func (r *responsesReader) item(it responsesItem, at int) {
	switch it.typ {
	case "message":
		content := it.Get("content")
		switch role := it.Str("role"); role {
		case "system", "developer":
			said := thread.Message{Role: thread.System, Parts: responsesContent(content, it.raw)}
			if len(r.messages) == 0 && !r.collecting && !ownformat.IsSummary(&said) {
				r.system = append(r.system, prompt.System{Text: responsesPlain(content), Role: role, Source: responsesSource(it.raw)})
				return
			}
			r.addMessage(it, said.Role, said.Parts)
		case "user":
			r.addMessage(it, thread.User, responsesContent(content, it.raw))
		case "assistant":
			r.addModelParts(it, at, responsesContent(content, it.raw)...)
		default:
			r.addModelParts(it, at, responsesOpaque(it, responsesPlain(content)))
		}
		return
	case "compaction_trigger":
		// The client asks for a compaction: this is nobody's message and begins no turn.
		r.addMessage(it, thread.System, []thread.Part{responsesOpaque(it, "")})
		return
	}
	if r.answered != nil && (strings.HasSuffix(it.typ, "_output") || it.Str("call_id") != "" && r.answered[it.Str("call_id")]) {
		r.addModelParts(it, at, responsesOpaque(it, responsesReadable(it)))
		return
	}
	if responsesIsOutput(it.typ, it.Str("call_id")) {
		r.addMessage(it, thread.Tool, []thread.Part{r.result(it)})
		return
	}
	part := responsesModelPart(it)
	if r.calls == nil {
		r.calls = map[string]string{}
	}
	switch p := part.(type) {
	case thread.ToolCall:
		r.calls[p.ID] = p.Name
	case thread.Opaque:
		if p.Call != "" {
			r.calls[p.Call] = p.Tool
		}
	}
	r.addModelParts(it, at, part)
}

// addMessage adds a message of one item.
func (r *responsesReader) addMessage(it responsesItem, role thread.Role, parts []thread.Part) {
	r.flush()
	r.messages = append(r.messages, thread.Message{
		Role:  role,
		Parts: parts,
		Frame: thread.NewFrame(wire.Responses, it.raw, r.count, 1, 1),
	})
}

// addModelParts adds the parts of an item that the model made to its response.
func (r *responsesReader) addModelParts(it responsesItem, at int, parts ...thread.Part) {
	if !r.collecting {
		r.collecting, r.start, r.first = true, at, r.count
	}
	r.end = at + len(it.raw)
	r.model = append(r.model, parts...)
}

func (r *responsesReader) flush() {
	if !r.collecting {
		return
	}
	r.messages = append(r.messages, thread.Message{
		Role:  thread.Assistant,
		Parts: r.model,
		Frame: thread.NewFrame(wire.Responses, r.text[r.start:r.end], r.first, r.count-r.first, 1),
	})
	r.model, r.collecting = nil, false
}

// responsesIsOutput reports whether the item answers a call. A tool_search_output
// without call id was made by OpenAI inside the response.
func responsesIsOutput(typ, callID string) bool {
	switch typ {
	case "mcp_approval_response":
		return true
	case "tool_search_output":
		return callID != ""
	}
	return strings.HasSuffix(typ, "_output")
}

func (r *responsesReader) result(it responsesItem) thread.ToolResult {
	res := thread.ToolResult{CallID: it.Str("call_id"), Outcome: thread.Success, Program: hosted.Parent(wire.Responses, it.raw) != "", Source: responsesSource(it.raw)}
	output, approved := it.Get("output"), it.Get("approve")
	failed := it.Str("status") == "incomplete" || it.Str("status") == "failed" || it.Get("error").Type != gjson.Null
	switch {
	case it.typ == "mcp_approval_response":
		res.CallID = it.Str("approval_request_id")
		failed = failed || approved.Type == gjson.False
		res.Content = []thread.Part{thread.Text{Text: "approve: " + approved.Raw}}
		res.Content = append(res.Content, responsesBeside(it.Get("reason"))...)
	case it.typ == "program_output":
		res.Content = responsesBeside(it.Get("result"))
	case it.typ == "tool_search_output":
		tools := it.Get("tools")
		res.Content = []thread.Part{thread.Opaque{Kind: "tools", Text: responsesTexts(tools, "name"), Instruction: true, Source: responsesSource(tools.Raw)}}
	case it.typ == "shell_call_output" && output.IsArray():
		res.Content = responsesShellOutput(output)
	case output.IsObject():
		part, refused := responsesOutputObject(output)
		failed = failed || refused
		res.Content = []thread.Part{part}
	case output.Type != gjson.Null:
		res.Content = responsesContent(output, output.Raw)
	}
	if it.typ == "local_shell_call_output" {
		res.CallID = cmp.Or(res.CallID, it.Str("id")) // the published schema names the call so
	}
	if failed {
		res.Outcome = thread.Failure
	}
	res.Tool = r.calls[res.CallID]
	return res
}

// responsesBeside reads a text that messages were stored without: it does not count for their ids.
func responsesBeside(v gjson.Result) []thread.Part {
	if v.Str == "" {
		return nil
	}
	from := responsesSource(v.Raw)
	from.Beside = true
	return []thread.Part{thread.Text{Text: v.Str, Source: from}}
}

// responsesCallArguments returns the arguments of a call. It is false for items that no
// *_output item answers.
func responsesCallArguments(it responsesItem) (gjson.Result, bool) {
	switch it.typ {
	case "function_call", "mcp_approval_request":
		return it.Get("arguments"), true
	case "tool_search_call":
		return it.Get("arguments"), it.Str("call_id") != ""
	case "custom_tool_call":
		return it.Get("input"), true
	case "local_shell_call", "shell_call", "computer_call":
		if action := it.Get("action"); action.Exists() {
			return action, true
		}
		return it.Get("actions"), true
	case "apply_patch_call":
		return it.Get("operation"), true
	}
	return gjson.Result{}, false
}

// responsesModelPart reads an item of the model that is no message.
func responsesModelPart(it responsesItem) thread.Part {
	if it.typ == "reasoning" {
		text := cmp.Or(responsesPlain(it.Get("summary")), responsesPlain(it.Get("content")))
		return thread.Reasoning{Text: text, Signature: it.Str("encrypted_content"), Source: responsesSource(it.raw)}
	}
	arguments, isCall := responsesCallArguments(it)
	if !isCall {
		return responsesOpaque(it, responsesReadable(it))
	}
	call := thread.ToolCall{ID: it.Str("call_id"), Name: it.Str("name"), Type: it.typ, Arguments: arguments.String(), Parent: hosted.Parent(wire.Responses, it.raw), Source: responsesSource(it.raw)}
	switch it.typ {
	case "function_call":
		call.Type = ""
	case "custom_tool_call":
		call.Type = "custom"
	case "mcp_approval_request":
		call.ID = it.Str("id")
	default:
		call.Name = strings.TrimSuffix(it.typ, "_call")
	}
	call.ID = cmp.Or(call.ID, it.Str("id")) // local_shell_call of old clients
	if space := it.Str("namespace"); space != "" {
		call.Name = space + responsesNamespaceMark + it.Str("name")
	}
	return call
}

// responsesNamespaceMark separates a namespace and a function's name in
// thread.ToolCall.Name. OpenAI allows no dot in a function's name.
const responsesNamespaceMark = "."

func responsesOpaque(it responsesItem, text string) thread.Opaque {
	return hosted.Mark(thread.Opaque{Kind: cmp.Or(it.typ, "unknown"), Text: text, Source: responsesSource(it.raw)})
}

// responsesSays are the paths to the readable text of built-in calls.
var responsesSays = map[string][]string{
	"web_search_call":       {"action.query", "action.queries", "action.url"},
	"file_search_call":      {"queries", "results.#.text"},
	"code_interpreter_call": {"code", "outputs.#.logs"},
	"image_generation_call": {"revised_prompt"},
	"mcp_call":              {"name", "arguments", "output", "error"},
	"mcp_list_tools":        {"tools.#.name"},
	"tool_search_output":    {"tools.#.name"},

	// As calls of the client these are read as such.
	"program":                 {"code"},
	"program_output":          {"result"},
	"shell_call":              {"action.commands"},
	"shell_call_output":       {"output.#.stdout", "output.#.stderr"},
	"apply_patch_call":        {"operation.path", "operation.diff"},
	"apply_patch_call_output": {"output"},
	"multi_agent_call":        {"action", "arguments"},
	"multi_agent_call_output": {"output.#.text"},
}

func responsesReadable(it responsesItem) string {
	paths, built := responsesSays[it.typ]
	switch {
	case it.typ == "tool_search_call":
		return it.Get("arguments").String()
	case !built:
		return responsesPlain(it.Get("content"))
	}
	var lines []string
	for _, path := range paths {
		// ForEach takes a text as well as a list of texts.
		gjson.Get(it.raw, path).ForEach(func(_, v gjson.Result) bool {
			if v.Str != "" {
				lines = append(lines, v.Str)
			}
			return true
		})
	}
	return strings.Join(lines, "\n")
}
