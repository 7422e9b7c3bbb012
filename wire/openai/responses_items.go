package openai

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// responsesItem is an input item with the fields that the codec reads, taken in
// one pass over the item.
type responsesItem struct {
	raw                             string
	typ, role, id, callID, name     string
	namespace, status               string
	content, output, summary        gjson.Result
	arguments, input, action        gjson.Result
	operation, errorField, tools    gjson.Result
	encrypted, approvalID, approved gjson.Result
}

func responsesReadItem(item gjson.Result) responsesItem {
	it := responsesItem{raw: item.Raw}
	item.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			it.typ = v.Str
		case "role":
			it.role = v.Str
		case "id":
			it.id = v.Str
		case "call_id":
			it.callID = v.Str
		case "name":
			it.name = v.Str
		case "namespace":
			it.namespace = v.Str
		case "status":
			it.status = v.Str
		case "content":
			it.content = v
		case "output":
			it.output = v
		case "summary":
			it.summary = v
		case "arguments":
			it.arguments = v
		case "input":
			it.input = v
		case "action", "actions":
			it.action = v
		case "operation":
			it.operation = v
		case "error":
			it.errorField = v
		case "tools":
			it.tools = v
		case "encrypted_content":
			it.encrypted = v
		case "approval_request_id":
			it.approvalID = v
		case "approve":
			it.approved = v
		}
		return true
	})
	if it.typ == "" && it.role != "" {
		it.typ = "message"
	}
	return it
}

// responsesReader turns items into messages. Items of the model are collected
// until something else comes.
type responsesReader struct {
	text     string // the document that the items are in
	path     string // of the array
	messages []thread.Message
	system   []prompt.System
	count    int // items seen

	calls map[string]string // names of the calls so far, by call id

	model      []thread.Part // parts of the response being read
	collecting bool
	start, end int // its text
	first      int // its first item
}

func (r *responsesReader) read(items gjson.Result) error {
	var err error
	items.ForEach(func(_, item gjson.Result) bool {
		if !item.IsObject() {
			err = responsesError(r.path+"["+strconv.Itoa(r.count)+"]", "want an item object")
			return false
		}
		r.item(responsesReadItem(item), item.Index)
		r.count++
		return true
	})
	r.flush()
	return err
}

func (r *responsesReader) item(it responsesItem, at int) {
	switch it.typ {
	case "message":
		switch it.role {
		case "system", "developer":
			if len(r.messages) == 0 && !r.collecting {
				r.system = append(r.system, prompt.System{Text: responsesPlain(it.content), Role: it.role, Source: responsesSource(it.raw)})
				return
			}
			r.alone(it, thread.System, responsesContent(it.content, it.raw))
		case "user":
			r.alone(it, thread.User, responsesContent(it.content, it.raw))
		case "assistant":
			r.made(it, at, responsesContent(it.content, it.raw)...)
		default:
			r.made(it, at, responsesOpaque(it, responsesPlain(it.content)))
		}
		return
	case "compaction_trigger":
		// The client asks for a compaction: nobody said it and it opens no turn.
		r.alone(it, thread.System, []thread.Part{responsesOpaque(it, "")})
		return
	}
	if responsesIsOutput(it) {
		r.alone(it, thread.Tool, []thread.Part{r.result(it)})
		return
	}
	part := responsesModelPart(it)
	if call, ok := part.(thread.ToolCall); ok {
		if r.calls == nil {
			r.calls = map[string]string{}
		}
		r.calls[call.ID] = call.Name
	}
	r.made(it, at, part)
}

// alone adds a message of one item.
func (r *responsesReader) alone(it responsesItem, role thread.Role, parts []thread.Part) {
	r.flush()
	r.messages = append(r.messages, thread.Message{
		Role:  role,
		Parts: parts,
		Frame: thread.NewFrame(wire.Responses, it.raw, r.count, 1, 1),
	})
}

// made adds the parts of an item that the model made to its response.
func (r *responsesReader) made(it responsesItem, at int, parts ...thread.Part) {
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
func responsesIsOutput(it responsesItem) bool {
	switch it.typ {
	case "mcp_approval_response":
		return true
	case "tool_search_output":
		return it.callID != ""
	}
	return strings.HasSuffix(it.typ, "_output")
}

func (r *responsesReader) result(it responsesItem) thread.ToolResult {
	res := thread.ToolResult{CallID: it.callID, Outcome: thread.Success, Source: responsesSource(it.raw)}
	switch it.typ {
	case "local_shell_call_output":
		if res.CallID == "" {
			res.CallID = it.id // the published schema names the call so
		}
	case "mcp_approval_response":
		res.CallID = it.approvalID.Str
		if it.approved.Type == gjson.False {
			res.Outcome = thread.Failure
		}
	}
	res.Tool = r.calls[res.CallID]
	if it.status == "incomplete" || it.status == "failed" || it.errorField.Type != gjson.Null {
		res.Outcome = thread.Failure
	}
	switch {
	case it.typ == "shell_call_output" && it.output.IsArray():
		res.Content = responsesShellOutput(it.output)
	case it.typ == "tool_search_output":
		res.Content = []thread.Part{thread.Opaque{Kind: "tools", Text: responsesToolNames(it.tools), Source: responsesSource(it.tools.Raw)}}
	case it.typ == "mcp_approval_response":
		res.Content = []thread.Part{thread.Text{Text: "approve: " + it.approved.Raw}}
	case it.output.IsObject():
		part, failed := responsesOutputObject(it.output)
		if failed {
			res.Outcome = thread.Failure
		}
		res.Content = []thread.Part{part}
	case it.output.Type != gjson.Null:
		res.Content = responsesContent(it.output, it.output.Raw)
	}
	return res
}

// responsesCallArguments returns the field that says what a call of this type
// does, and whether the type is one that an *_output item answers.
func responsesCallArguments(it responsesItem) (gjson.Result, bool) {
	switch it.typ {
	case "function_call", "mcp_approval_request":
		return it.arguments, true
	case "tool_search_call":
		return it.arguments, it.callID != ""
	case "custom_tool_call":
		return it.input, true
	case "local_shell_call", "shell_call", "computer_call":
		return it.action, true
	case "apply_patch_call":
		return it.operation, true
	}
	return gjson.Result{}, false
}

// responsesModelPart reads an item that the model made and that is no message.
func responsesModelPart(it responsesItem) thread.Part {
	if it.typ == "reasoning" {
		text := responsesPlain(it.summary)
		if text == "" {
			text = responsesPlain(it.content)
		}
		return thread.Reasoning{Text: text, Signature: it.encrypted.Str, Source: responsesSource(it.raw)}
	}
	arguments, isCall := responsesCallArguments(it)
	if !isCall {
		return responsesOpaque(it, responsesReadable(it))
	}
	call := thread.ToolCall{ID: it.callID, Name: it.name, Type: it.typ, Arguments: arguments.String(), Source: responsesSource(it.raw)}
	switch it.typ {
	case "function_call":
		call.Type = ""
	case "custom_tool_call":
		call.Type = "custom"
	case "mcp_approval_request":
		call.ID = it.id
	default:
		call.Name = strings.TrimSuffix(it.typ, "_call")
	}
	if call.ID == "" {
		call.ID = it.id // local_shell_call of old clients
	}
	if it.namespace != "" {
		call.Name = it.namespace + responsesNamespaceMark + it.name
	}
	return call
}

// responsesNamespaceMark stands between a namespace and a function's name in
// thread.ToolCall.Name. OpenAI allows no point in a function's name.
const responsesNamespaceMark = "."

func responsesOpaque(it responsesItem, text string) thread.Opaque {
	kind := it.typ
	if kind == "" {
		kind = "unknown"
	}
	return thread.Opaque{Kind: kind, Text: text, Source: responsesSource(it.raw)}
}

// responsesReadable returns what a person could read in a built-in call.
func responsesReadable(it responsesItem) string {
	var lines []string
	add := func(path string) {
		v := gjson.Get(it.raw, path)
		switch {
		case v.IsArray():
			v.ForEach(func(_, e gjson.Result) bool {
				if e.Type == gjson.String && e.Str != "" {
					lines = append(lines, e.Str)
				}
				return true
			})
		case v.Type == gjson.String && v.Str != "":
			lines = append(lines, v.Str)
		}
	}
	switch it.typ {
	case "web_search_call":
		add("action.query")
		add("action.queries")
		add("action.url")
	case "file_search_call":
		add("queries")
		add("results.#.text")
	case "code_interpreter_call":
		add("code")
		add("outputs.#.logs")
	case "image_generation_call":
		add("revised_prompt")
	case "mcp_call":
		add("name")
		add("arguments")
		add("output")
		add("error")
	case "mcp_list_tools", "tool_search_output":
		return responsesToolNames(it.tools)
	case "tool_search_call":
		return it.arguments.String()
	default:
		return responsesPlain(it.content)
	}
	return strings.Join(lines, "\n")
}

func responsesToolNames(tools gjson.Result) string {
	var names []string
	tools.ForEach(func(_, tool gjson.Result) bool {
		if name := tool.Get("name").Str; name != "" {
			names = append(names, name)
		}
		return true
	})
	return strings.Join(names, "\n")
}
