// Package items lists what the four request APIs can carry in a conversation: each type of item,
// block, part and member of their SDKs, with an example. docs/items.md is made from it, by reading
// the examples with the codecs, and tests go through it.
package items

import (
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// Item is one type, and how it stands in a request.
type Item struct {
	API   string
	Place string // of the list, or of what it is in: message, item, part, result, member
	Type  string
	// Example is an array of the request's list (messages, input, contents) in which the type occurs
	// once. $n is a number, and $w a word, that no other example has.
	Example string
	// Bare says that the example has no readable word.
	Bare bool
	// Alone says that it can only be tried by itself: it must come last, or the server keeps a part.
	Alone bool
}

// At returns the example with the n-th number and word.
func (i *Item) At(n int) string {
	return strings.NewReplacer("$n", strconv.Itoa(n), "$w", Word(n)).Replace(i.Example)
}

// Word is the n-th word.
func Word(n int) string { return "wombat" + strconv.Itoa(1000+n) + "x" }

// Names are what the APIs are called in docs.
var Names = map[string]string{wire.Anthropic: "Anthropic Messages", wire.Responses: "OpenAI Responses", wire.Chat: "OpenAI Chat Completions", wire.Gemini: "Gemini"}

// Bodies are requests of each API around a list, for fmt.
func Bodies() map[string]string {
	return map[string]string{
		wire.Anthropic: `{"model":"claude-opus-5","max_tokens":1000,"tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":%s}`,
		wire.Responses: `{"model":"gpt-5.5","tools":[{"type":"function","name":"read","parameters":{"type":"object"}}],"input":%s}`,
		wire.Chat:      `{"model":"gpt-5.5","tools":[{"type":"function","function":{"name":"read"}}],"messages":%s}`,
		wire.Gemini:    `{"tools":[{"functionDeclarations":[{"name":"read"}]}],"contents":%s}`,
	}
}

// Pixel is a picture.
const Pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// The frames that many examples share.
const (
	user      = `{"role":"user","content":[`
	assistant = `{"role":"assistant","content":[`
	call      = `[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_$n","name":"read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_$n","content":[`
	function  = `[{"type":"function_call","call_id":"call_$n","name":"read","arguments":"{}"},{"type":"function_call_output","call_id":"call_$n","output":[`
	chatCall  = `[{"role":"assistant","content":null,"tool_calls":[`
)

// server is a call at Anthropic with its result.
func server(tool, kind, content string) string {
	return `[` + assistant + `{"type":"server_tool_use","id":"srvtoolu_$n","name":"` + tool + `","input":{"q":"$n"}},{"type":"` + kind + `","tool_use_id":"srvtoolu_$n","content":` + content + `}]}]`
}

// All are the types of all APIs, in the order of docs/items.md.
var All = []Item{
	{API: wire.Anthropic, Place: "block", Type: "text", Example: `[` + user + `{"type":"text","text":"$w"}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "image", Example: `[` + user + `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + Pixel + `"}}]}]`, Bare: true},
	{API: wire.Anthropic, Place: "block", Type: "document", Example: `[` + user + `{"type":"document","title":"$w","source":{"type":"text","media_type":"text/plain","data":"stock"}}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "search_result", Example: `[` + user + `{"type":"search_result","source":"https://a.example/$n","title":"$w","content":[{"type":"text","text":"hit"}]}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "thinking", Example: `[` + assistant + `{"type":"thinking","thinking":"$w","signature":"c2ln"},{"type":"text","text":"so"}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "redacted_thinking", Example: `[` + assistant + `{"type":"redacted_thinking","data":"c2ln"},{"type":"text","text":"so"}]}]`, Bare: true},
	{API: wire.Anthropic, Place: "block", Type: "tool_use", Example: `[` + assistant + `{"type":"tool_use","id":"toolu_$n","name":"read","input":{"path":"$w"}}]},` + user + `{"type":"tool_result","tool_use_id":"toolu_$n","content":"x"}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "tool_result", Example: call + `{"type":"text","text":"$w"}]}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "server_tool_use", Example: `[` + assistant + `{"type":"server_tool_use","id":"srvtoolu_$n","name":"web_search","input":{"query":"$w"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_$n","content":[]}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "web_search_tool_result", Example: server("web_search", "web_search_tool_result", `[{"type":"web_search_result","url":"https://a.example","title":"$w","encrypted_content":"c2ln"}]`)},
	{API: wire.Anthropic, Place: "block", Type: "web_fetch_tool_result", Example: server("web_fetch", "web_fetch_tool_result", `{"type":"web_fetch_result","url":"https://a.example","content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"$w"}}}`)},
	{API: wire.Anthropic, Place: "block", Type: "advisor_tool_result", Example: server("advisor", "advisor_tool_result", `{"type":"advisor_result","text":"$w"}`)},
	{API: wire.Anthropic, Place: "block", Type: "code_execution_tool_result", Example: server("code_execution", "code_execution_tool_result", `{"type":"code_execution_result","stdout":"$w","stderr":"","return_code":0,"content":[]}`)},
	{API: wire.Anthropic, Place: "block", Type: "bash_code_execution_tool_result", Example: server("bash_code_execution", "bash_code_execution_tool_result", `{"type":"bash_code_execution_result","stdout":"$w","stderr":"","return_code":0,"content":[]}`)},
	{API: wire.Anthropic, Place: "block", Type: "text_editor_code_execution_tool_result", Example: server("text_editor_code_execution", "text_editor_code_execution_tool_result", `{"type":"text_editor_code_execution_view_result","file_type":"text","content":"$w"}`)},
	{API: wire.Anthropic, Place: "block", Type: "tool_search_tool_result", Example: server("tool_search_tool_bm25", "tool_search_tool_result", `{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"$w"}]}`)},
	{API: wire.Anthropic, Place: "block", Type: "mcp_tool_use", Example: `[` + assistant + `{"type":"mcp_tool_use","id":"mcptoolu_$n","name":"find","server_name":"notes","input":{"q":"$w"}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_$n","is_error":false,"content":[]}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "mcp_tool_result", Example: `[` + assistant + `{"type":"mcp_tool_use","id":"mcptoolu_$n","name":"find","server_name":"notes","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_$n","is_error":false,"content":[{"type":"text","text":"$w"}]}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "mcp_tool_listing", Example: `[` + assistant + `{"type":"mcp_tool_listing","mcp_server_name":"notes","tools":[{"name":"$w","input_schema":{"type":"object"}}]},{"type":"text","text":"so"}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "container_upload", Example: `[` + user + `{"type":"container_upload","file_id":"file_$n"}]}]`, Bare: true},
	{API: wire.Anthropic, Place: "block", Type: "compaction", Example: `[` + assistant + `{"type":"compaction","content":"$w","encrypted_content":"c2ln","tool_changes":[{"type":"tool_removal","tool":{"type":"tool_reference","tool_name":"weigh"}}]},{"type":"text","text":"so"}]}]`},
	{API: wire.Anthropic, Place: "block", Type: "tool_addition", Example: `[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","tool_name":"read"}}]}]`, Bare: true},
	{API: wire.Anthropic, Place: "block", Type: "tool_removal", Example: `[{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","tool_name":"write"}}]}]`, Bare: true},
	{API: wire.Anthropic, Place: "block", Type: "fallback", Example: `[` + assistant + `{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}},{"type":"text","text":"so"}]}]`, Bare: true},
	{API: wire.Anthropic, Place: "result", Type: "text", Example: call + `{"type":"text","text":"$w"}]}]}]`},
	{API: wire.Anthropic, Place: "result", Type: "image", Example: call + `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + Pixel + `"}}]}]}]`, Bare: true},
	{API: wire.Anthropic, Place: "result", Type: "search_result", Example: call + `{"type":"search_result","source":"https://a.example/$n","title":"$w","content":[{"type":"text","text":"hit"}]}]}]}]`},
	{API: wire.Anthropic, Place: "result", Type: "document", Example: call + `{"type":"document","title":"$w","source":{"type":"text","media_type":"text/plain","data":"stock"}}]}]}]`},
	{API: wire.Anthropic, Place: "result", Type: "tool_reference", Example: call + `{"type":"tool_reference","tool_name":"$w"}]}]}]`},
	{API: wire.Anthropic, Place: "result", Type: "browser_state", Example: call + `{"type":"browser_state","tabs":[{"tab_id":"1","url":"https://a.example","title":"$w","active":true}]}]}]}]`},

	{API: wire.Responses, Place: "item", Type: "message", Example: `[{"type":"message","role":"user","content":"$w"}]`},
	{API: wire.Responses, Place: "item", Type: "file_search_call", Example: `[{"type":"file_search_call","id":"fs_$n","status":"completed","queries":["$w"]}]`},
	{API: wire.Responses, Place: "item", Type: "computer_call", Example: `[{"type":"computer_call","id":"cu_$n","call_id":"call_$n","status":"completed","action":{"type":"type","text":"$w"}},{"type":"computer_call_output","call_id":"call_$n","output":{"type":"computer_screenshot","file_id":"file_1"}}]`},
	{API: wire.Responses, Place: "item", Type: "computer_call_output", Example: `[{"type":"computer_call","id":"cu_$n","call_id":"call_$n","status":"completed","action":{"type":"screenshot"}},{"type":"computer_call_output","call_id":"call_$n","output":{"type":"computer_screenshot","file_id":"$w"}}]`},
	{API: wire.Responses, Place: "item", Type: "web_search_call", Example: `[{"type":"web_search_call","id":"ws_$n","status":"completed","action":{"type":"search","query":"$w"}}]`},
	{API: wire.Responses, Place: "item", Type: "function_call", Example: `[{"type":"function_call","call_id":"call_$n","name":"read","arguments":"{\"path\":\"$w\"}"},{"type":"function_call_output","call_id":"call_$n","output":"x"}]`},
	{API: wire.Responses, Place: "item", Type: "function_call_output", Example: `[{"type":"function_call","call_id":"call_$n","name":"read","arguments":"{}"},{"type":"function_call_output","call_id":"call_$n","output":"$w"}]`},
	{API: wire.Responses, Place: "item", Type: "agent_message", Example: `[{"type":"agent_message","author":"scout","recipient":"main","content":[{"type":"input_text","text":"$w"}]}]`},
	{API: wire.Responses, Place: "item", Type: "multi_agent_call", Example: `[{"type":"multi_agent_call","call_id":"call_$n","action":"spawn_agent","arguments":"$w"},{"type":"multi_agent_call_output","call_id":"call_$n","action":"spawn_agent","output":[]}]`},
	{API: wire.Responses, Place: "item", Type: "multi_agent_call_output", Example: `[{"type":"multi_agent_call","call_id":"call_$n","action":"wait_agent","arguments":"{}"},{"type":"multi_agent_call_output","call_id":"call_$n","action":"wait_agent","output":[{"type":"output_text","text":"$w"}]}]`},
	{API: wire.Responses, Place: "item", Type: "tool_search_call", Example: `[{"type":"tool_search_call","id":"ts_$n","execution":"server","arguments":{"q":"$w"}},{"type":"tool_search_output","id":"to_$n","execution":"server","tools":[]}]`},
	{API: wire.Responses, Place: "item", Type: "tool_search_output", Example: `[{"type":"tool_search_call","id":"ts_$n","execution":"server","arguments":{}},{"type":"tool_search_output","id":"to_$n","execution":"server","tools":[{"type":"function","name":"$w","parameters":{"type":"object"}}]}]`},
	{API: wire.Responses, Place: "item", Type: "additional_tools", Example: `[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"$w","parameters":{"type":"object"}}]}]`},
	{API: wire.Responses, Place: "item", Type: "configuration_update", Example: `[{"type":"configuration_update","reasoning":{"effort":"low"}}]`, Bare: true},
	{API: wire.Responses, Place: "item", Type: "reasoning", Example: `[{"type":"reasoning","id":"rs_$n","summary":[{"type":"summary_text","text":"$w"}],"encrypted_content":"c2ln"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}]`},
	{API: wire.Responses, Place: "item", Type: "compaction", Example: `[{"type":"compaction","id":"cmp_$n","encrypted_content":"c2ln"}]`, Bare: true},
	{API: wire.Responses, Place: "item", Type: "image_generation_call", Example: `[{"type":"image_generation_call","id":"ig_$n","status":"completed","revised_prompt":"$w","result":"` + Pixel + `"}]`},
	{API: wire.Responses, Place: "item", Type: "code_interpreter_call", Example: `[{"type":"code_interpreter_call","id":"ci_$n","container_id":"c","status":"completed","code":"print(1)","outputs":[{"type":"logs","logs":"$w"}]}]`},
	{API: wire.Responses, Place: "item", Type: "local_shell_call", Example: `[{"type":"local_shell_call","id":"ls_$n","call_id":"call_$n","status":"completed","action":{"type":"exec","command":["$w"],"env":{}}},{"type":"local_shell_call_output","id":"call_$n","output":"x"}]`},
	{API: wire.Responses, Place: "item", Type: "local_shell_call_output", Example: `[{"type":"local_shell_call","id":"ls_$n","call_id":"call_$n","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}},{"type":"local_shell_call_output","id":"call_$n","output":"$w"}]`},
	{API: wire.Responses, Place: "item", Type: "shell_call", Example: `[{"type":"shell_call","call_id":"call_$n","action":{"commands":["$w"]}},{"type":"shell_call_output","call_id":"call_$n","output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}]}]`},
	{API: wire.Responses, Place: "item", Type: "shell_call_output", Example: `[{"type":"shell_call","call_id":"call_$n","action":{"commands":["ls"]}},{"type":"shell_call_output","call_id":"call_$n","output":[{"stdout":"$w","stderr":"","outcome":{"type":"exit","exit_code":0}}]}]`},
	{API: wire.Responses, Place: "item", Type: "apply_patch_call", Example: `[{"type":"apply_patch_call","call_id":"call_$n","status":"completed","operation":{"type":"delete_file","path":"$w"}},{"type":"apply_patch_call_output","call_id":"call_$n","status":"completed"}]`},
	{API: wire.Responses, Place: "item", Type: "apply_patch_call_output", Example: `[{"type":"apply_patch_call","call_id":"call_$n","status":"completed","operation":{"type":"delete_file","path":"a"}},{"type":"apply_patch_call_output","call_id":"call_$n","status":"completed","output":"$w"}]`},
	{API: wire.Responses, Place: "item", Type: "mcp_list_tools", Example: `[{"type":"mcp_list_tools","id":"mcpl_$n","server_label":"notes","tools":[{"name":"$w","input_schema":{}}]}]`},
	{API: wire.Responses, Place: "item", Type: "mcp_approval_request", Example: `[{"type":"mcp_approval_request","id":"mcpr_$n","server_label":"notes","name":"find","arguments":"$w"},{"type":"mcp_approval_response","approval_request_id":"mcpr_$n","approve":true}]`},
	{API: wire.Responses, Place: "item", Type: "mcp_approval_response", Example: `[{"type":"mcp_approval_request","id":"mcpr_$n","server_label":"notes","name":"find","arguments":"{}"},{"type":"mcp_approval_response","approval_request_id":"mcpr_$n","approve":true,"reason":"$w"}]`},
	{API: wire.Responses, Place: "item", Type: "mcp_call", Example: `[{"type":"mcp_call","id":"mcp_$n","server_label":"notes","name":"find","arguments":"{}","output":"$w"}]`},
	{API: wire.Responses, Place: "item", Type: "custom_tool_call", Example: `[{"type":"custom_tool_call","call_id":"call_$n","name":"patch","input":"$w"},{"type":"custom_tool_call_output","call_id":"call_$n","output":"x"}]`},
	{API: wire.Responses, Place: "item", Type: "custom_tool_call_output", Example: `[{"type":"custom_tool_call","call_id":"call_$n","name":"patch","input":"p"},{"type":"custom_tool_call_output","call_id":"call_$n","output":"$w"}]`},
	{API: wire.Responses, Place: "item", Type: "compaction_trigger", Example: `[{"type":"compaction_trigger"}]`, Bare: true, Alone: true},
	{API: wire.Responses, Place: "item", Type: "item_reference", Example: `[{"type":"item_reference","id":"msg_$n"}]`, Bare: true, Alone: true},
	{API: wire.Responses, Place: "item", Type: "program", Example: `[{"type":"program","id":"prog_$n","call_id":"call_$n","code":"$w()","fingerprint":"f"},{"type":"program_output","id":"po_$n","call_id":"call_$n","status":"completed","result":"1"}]`},
	{API: wire.Responses, Place: "item", Type: "program_output", Example: `[{"type":"program","id":"prog_$n","call_id":"call_$n","code":"f()","fingerprint":"f"},{"type":"program_output","id":"po_$n","call_id":"call_$n","status":"completed","result":"$w"}]`},
	{API: wire.Responses, Place: "part", Type: "input_text", Example: `[` + user + `{"type":"input_text","text":"$w"}]}]`},
	{API: wire.Responses, Place: "part", Type: "input_image", Example: `[` + user + `{"type":"input_image","file_id":"$w","detail":"low"}]}]`},
	{API: wire.Responses, Place: "part", Type: "input_file", Example: `[` + user + `{"type":"input_file","file_id":"$w"}]}]`},
	{API: wire.Responses, Place: "part", Type: "output_text", Example: `[` + assistant + `{"type":"output_text","text":"$w","annotations":[]}]}]`},
	{API: wire.Responses, Place: "part", Type: "refusal", Example: `[` + assistant + `{"type":"refusal","refusal":"$w"}]}]`},
	{API: wire.Responses, Place: "part", Type: "encrypted_content", Example: `[{"type":"agent_message","author":"scout","recipient":"main","content":[{"type":"encrypted_content","encrypted_content":"c2ln"}]}]`, Bare: true},
	{API: wire.Responses, Place: "result", Type: "input_text", Example: function + `{"type":"input_text","text":"$w"}]}]`},
	{API: wire.Responses, Place: "result", Type: "input_image", Example: function + `{"type":"input_image","file_id":"$w","detail":"low"}]}]`},
	{API: wire.Responses, Place: "result", Type: "input_file", Example: function + `{"type":"input_file","file_id":"$w"}]}]`},

	{API: wire.Chat, Place: "message", Type: "developer", Example: `[{"role":"developer","content":"$w"}]`},
	{API: wire.Chat, Place: "message", Type: "system", Example: `[{"role":"system","content":"$w"}]`},
	{API: wire.Chat, Place: "message", Type: "user", Example: `[{"role":"user","content":"$w"}]`},
	{API: wire.Chat, Place: "message", Type: "assistant", Example: `[{"role":"assistant","content":"$w"}]`},
	{API: wire.Chat, Place: "message", Type: "tool", Example: chatCall + `{"id":"call_$n","type":"function","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_$n","content":"$w"}]`},
	{API: wire.Chat, Place: "message", Type: "function", Example: `[{"role":"assistant","content":null,"function_call":{"name":"read","arguments":"{}"}},{"role":"function","name":"read","content":"$w"}]`},
	{API: wire.Chat, Place: "part", Type: "text", Example: `[` + user + `{"type":"text","text":"$w"}]}]`},
	{API: wire.Chat, Place: "part", Type: "image_url", Example: `[` + user + `{"type":"image_url","image_url":{"url":"https://a.example/$w.png"}}]}]`},
	{API: wire.Chat, Place: "part", Type: "input_audio", Example: `[` + user + `{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]`, Bare: true},
	{API: wire.Chat, Place: "part", Type: "file", Example: `[` + user + `{"type":"file","file":{"file_id":"$w"}}]}]`},
	{API: wire.Chat, Place: "part", Type: "refusal", Example: `[` + assistant + `{"type":"refusal","refusal":"$w"}]}]`},
	{API: wire.Chat, Place: "call", Type: "function", Example: chatCall + `{"id":"call_$n","type":"function","function":{"name":"read","arguments":"{\"path\":\"$w\"}"}}]},{"role":"tool","tool_call_id":"call_$n","content":"x"}]`},
	{API: wire.Chat, Place: "call", Type: "custom", Example: chatCall + `{"id":"call_$n","type":"custom","custom":{"name":"patch","input":"$w"}}]},{"role":"tool","tool_call_id":"call_$n","content":"x"}]`},

	{API: wire.Gemini, Place: "part", Type: "text", Example: `[{"role":"user","parts":[{"text":"$w"}]}]`},
	{API: wire.Gemini, Place: "part", Type: "inlineData", Example: `[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + Pixel + `"}}]}]`, Bare: true},
	{API: wire.Gemini, Place: "part", Type: "fileData", Example: `[{"role":"user","parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://a.example/$w"}}]}]`},
	{API: wire.Gemini, Place: "part", Type: "functionCall", Example: `[{"role":"model","parts":[{"functionCall":{"name":"read","args":{"path":"$w"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"x"}}}]}]`},
	{API: wire.Gemini, Place: "part", Type: "functionResponse", Example: `[{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"$w"}}}]}]`},
	{API: wire.Gemini, Place: "part", Type: "executableCode", Example: `[{"role":"model","parts":[{"executableCode":{"id":"c$n","language":"PYTHON","code":"$w()"}},{"codeExecutionResult":{"id":"c$n","outcome":"OUTCOME_OK","output":"1"}}]}]`},
	{API: wire.Gemini, Place: "part", Type: "codeExecutionResult", Example: `[{"role":"model","parts":[{"executableCode":{"id":"c$n","language":"PYTHON","code":"f()"}},{"codeExecutionResult":{"id":"c$n","outcome":"OUTCOME_OK","output":"$w"}}]}]`},
	{API: wire.Gemini, Place: "part", Type: "toolCall", Example: `[{"role":"model","parts":[{"toolCall":{"id":"t$n","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["$w"]}}},{"toolResponse":{"id":"t$n","toolType":"GOOGLE_SEARCH_WEB","response":{}}}]}]`},
	{API: wire.Gemini, Place: "part", Type: "toolResponse", Example: `[{"role":"model","parts":[{"toolCall":{"id":"t$n","toolType":"GOOGLE_SEARCH_WEB","args":{}}},{"toolResponse":{"id":"t$n","toolType":"GOOGLE_SEARCH_WEB","response":{"answer":"$w"}}}]}]`},
	{API: wire.Gemini, Place: "member", Type: "thought", Example: `[{"role":"model","parts":[{"text":"$w","thought":true},{"text":"so"}]}]`},
	{API: wire.Gemini, Place: "member", Type: "thoughtSignature", Example: `[{"role":"model","parts":[{"text":"$w","thoughtSignature":"c2ln"}]}]`},
	{API: wire.Gemini, Place: "member", Type: "videoMetadata", Example: `[{"role":"user","parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://a.example/$w"},"videoMetadata":{"fps":1}}]}]`},
	{API: wire.Gemini, Place: "member", Type: "mediaResolution", Example: `[{"role":"user","parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://a.example/$w"},"mediaResolution":{"level":"MEDIA_RESOLUTION_LOW"}}]}]`},
	{API: wire.Gemini, Place: "member", Type: "mediaProcessing", Example: `[{"role":"user","parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://a.example/$w"},"mediaProcessing":"STATIC"}]}]`},
	{API: wire.Gemini, Place: "member", Type: "partMetadata", Example: `[{"role":"user","parts":[{"text":"$w","partMetadata":{"stream":1}}]}]`},
	{API: wire.Gemini, Place: "member", Type: "speechMetadata", Example: `[{"role":"model","parts":[{"text":"$w","speechMetadata":{"speaker":"Ann"}}]}]`},
	{API: wire.Gemini, Place: "member", Type: "audioTranscription", Example: `[{"role":"model","parts":[{"inlineData":{"mimeType":"audio/wav","data":"AAAA"},"audioTranscription":{"text":"hm"}}]}]`, Bare: true},
}
