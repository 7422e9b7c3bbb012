package items

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// form is how a user and a model speak in an API, results that come late, programs that still run at the end, and
// answers in which the provider ran several calls. $n is a number.
type form struct{ user, model, late, running, searches string }

var forms = map[string]form{
	wire.Anthropic: {
		`{"role":"user","content":"Shelf %d, please."}`, `{"role":"assistant","content":%q}`,
		`{"role":"assistant","content":[{"type":"text","text":"Off."},{"type":"mcp_tool_use","id":"mcptoolu_l$n","name":"find","server_name":"notes","input":{}}]},{"role":"user","content":"And?"},{"role":"assistant","content":[{"type":"mcp_tool_result","tool_use_id":"mcptoolu_l$n","is_error":false,"content":[{"type":"text","text":"late $n"}]},{"type":"text","text":"There."}]}`,
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_r","name":"code_execution","input":{"code":"read()"}},{"type":"tool_use","id":"toolu_r","name":"read","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_r"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_r","content":"row"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"server_tool_use","id":"srvtoolu_a$n","name":"web_search","input":{"query":"box"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_a$n","content":[]},{"type":"server_tool_use","id":"srvtoolu_b$n","name":"web_search","input":{"query":"lid"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_b$n","content":[]},{"type":"text","text":"Found $n."}]}`,
	},
	wire.Responses: {
		`{"role":"user","content":"Shelf %d, please."}`, `{"role":"assistant","content":%q}`,
		`{"type":"multi_agent_call","call_id":"call_l$n","action":"spawn_agent","arguments":"{}"},{"role":"user","content":"And?"},{"type":"multi_agent_call_output","call_id":"call_l$n","action":"spawn_agent","output":[{"type":"output_text","text":"late $n"}]}`,
		`{"type":"program","id":"prog_r","call_id":"call_r","code":"read()","fingerprint":"f"},{"type":"function_call","call_id":"call_q","name":"read","arguments":"{}","caller":{"type":"program","caller_id":"call_r"}},{"type":"function_call_output","call_id":"call_q","output":"row","caller":{"type":"program","caller_id":"call_r"}}`,
		`{"type":"reasoning","id":"rs_a$n","summary":[],"encrypted_content":"e"},{"type":"web_search_call","id":"ws_a$n","status":"completed","action":{"type":"search","query":"box"}},{"type":"web_search_call","id":"ws_b$n","status":"completed","action":{"type":"search","query":"lid"}},{"type":"reasoning","id":"rs_b$n","summary":[],"encrypted_content":"e"},{"type":"web_search_call","id":"ws_c$n","status":"completed","action":{"type":"search","query":"key"}},{"type":"message","id":"msg_c$n","role":"assistant","content":[{"type":"output_text","text":"Found $n."}]}`,
	},
	wire.Chat: {`{"role":"user","content":"Shelf %d, please."}`, `{"role":"assistant","content":%q}`, "", "", ""},
	wire.Gemini: {
		`{"role":"user","parts":[{"text":"Shelf %d, please."}]}`, `{"role":"model","parts":[{"text":%q}]}`,
		`{"role":"model","parts":[{"toolCall":{"id":"l$n","toolType":"GOOGLE_SEARCH_WEB","args":{}}}]},{"role":"user","parts":[{"text":"And?"}]},{"role":"model","parts":[{"toolResponse":{"id":"l$n","toolType":"GOOGLE_SEARCH_WEB","response":{"answer":"late $n"}}},{"text":"There."}]}`, "",
		`{"role":"model","parts":[{"toolCall":{"id":"a$n","toolType":"GOOGLE_SEARCH_WEB","args":{}}},{"toolResponse":{"id":"a$n","toolType":"GOOGLE_SEARCH_WEB","response":{}}},{"executableCode":{"id":"b$n","language":"PYTHON","code":"f()"}},{"codeExecutionResult":{"id":"b$n","outcome":"OUTCOME_OK","output":"1"}},{"text":"Found $n."}]}`,
	},
}

// Draw draws a conversation with any of the items of an API, and results that come late, each element of its list
// as JSON. A program may still run at its end. steps are between what and what.
func Draw(t *rapid.T, api string, least, most int) (elements []string) {
	form := forms[api]
	var list []string
	say := func(text string, n int) { list = append(list, strings.ReplaceAll(text, "$n", strconv.Itoa(n))) }
	var all []Item
	for _, item := range All {
		if item.API == api && !item.Alone {
			all = append(all, item)
		}
	}
	for n := range rapid.IntRange(least, most).Draw(t, "steps") {
		list = append(list, fmt.Sprintf(form.user, n))
		if form.late != "" && rapid.IntRange(0, 7).Draw(t, "late") == 0 {
			say(form.late, n)
			list = append(list, fmt.Sprintf(form.user, n))
		}
		if form.searches != "" && rapid.IntRange(0, 3).Draw(t, "searches") == 0 {
			say(form.searches, n)
			list = append(list, fmt.Sprintf(form.user, n))
		}
		item := rapid.SampledFrom(all).Draw(t, "item")
		example := item.At(n)
		if strings.HasPrefix(example, `[{"role":"user"`) {
			list = append(list, fmt.Sprintf(form.model, "Which one?"))
		}
		list = append(list, strings.TrimSuffix(strings.TrimPrefix(example, "["), "]"))
		if !strings.Contains(example, `"role":"assistant","content":"`) {
			list = append(list, fmt.Sprintf(form.model, strings.Repeat(fmt.Sprintf("box %d, ", n), rapid.IntRange(1, 120).Draw(t, "boxes"))))
		}
	}
	list = append(list, fmt.Sprintf(form.user, 99))
	if form.running != "" && rapid.Bool().Draw(t, "a program runs") {
		list = append(list, form.running)
	}
	for _, v := range gjson.Parse("[" + strings.Join(list, ",") + "]").Array() {
		elements = append(elements, v.Raw)
	}
	return elements
}

// Body is a request with a list.
func Body(api string, elements []string) string {
	return fmt.Sprintf(Bodies()[api], "["+strings.Join(elements, ",")+"]")
}

// clients are the items of Responses that a client sends.
var clients = map[string]bool{
	"function_call_output": true, "custom_tool_call_output": true, "computer_call_output": true, "local_shell_call_output": true, "shell_call_output": true,
	"apply_patch_call_output": true, "mcp_approval_response": true, "additional_tools": true, "configuration_update": true,
}

// ByModel reports whether an element is part of an answer.
func ByModel(api, element string) bool {
	v := gjson.Parse(element)
	switch role, kind := v.Get("role").Str, v.Get("type").Str; {
	case api != wire.Responses || role != "":
		return role == "assistant" || role == "model"
	case kind == "tool_search_output":
		return v.Get("call_id").Str == ""
	default:
		return !clients[kind]
	}
}

// Turns divides a conversation into what a client sends and what it is answered, by turns; each is a list of elements.
// An answer has one element, on Responses all up to the client's next.
func Turns(api string, elements []string) (turns [][]string) {
	for i, e := range elements {
		model := ByModel(api, e)
		if i == 0 || model != ByModel(api, elements[i-1]) || model && api != wire.Responses {
			turns = append(turns, nil)
		}
		turns[len(turns)-1] = append(turns[len(turns)-1], e)
	}
	return turns
}
