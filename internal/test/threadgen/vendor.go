package threadgen

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Sealed begins what only the named API can read: signatures, encrypted
// content, blocks of its own. No other API may ever be sent it.
func Sealed(api string) string { return "c2VhbGVk" + api }

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// vendor are stretches of conversation as each API's clients send them, one
// request array each. $n is a number that no other stretch has, $s a seal.
var vendor = map[string][]string{
	wire.Anthropic: {
		`[{"role":"assistant","content":[{"type":"thinking","thinking":"weigh it","signature":"$s"},{"type":"text","text":"Searching."},` +
			`{"type":"server_tool_use","id":"srvtoolu_$n","name":"web_search","input":{"query":"go $n"}},` +
			`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_$n","content":[{"type":"web_search_result","url":"https://example.com/$n","title":"Title","encrypted_content":"$s"}]},` +
			`{"type":"text","text":"Found $n."}]}]`,
		`[{"role":"assistant","content":[{"type":"compaction","content":"Earlier the queue was mended.","encrypted_content":"$s"},{"type":"text","text":"Going on."}]}]`,
		`[{"role":"assistant","content":[{"type":"redacted_thinking","data":"$s"},{"type":"tool_use","id":"toolu_a$n","name":"Read","input":{"file_path":"a.go"}},{"type":"tool_use","id":"toolu_b$n","name":"Bash","input":{"command":"make"}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_a$n","content":[{"type":"text","text":"package a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}]},` +
			`{"type":"tool_result","tool_use_id":"toolu_b$n","content":"boom","is_error":true},{"type":"text","text":"and hurry, $n"}]}]`,
		`[{"role":"user","content":[{"type":"document","title":"notes","source":{"type":"text","media_type":"text/plain","data":"note $n"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQK"}},` +
			`{"type":"search_result","source":"https://example.com/$n","title":"hit","content":[{"type":"text","text":"hit $n"}]},{"type":"text","text":"Use these.","cache_control":{"type":"ephemeral"}}]}]`,
		// Code at the provider calls a tool of the client, and goes on with its result.
		`[{"role":"assistant","content":[{"type":"text","text":"Counting."},{"type":"server_tool_use","id":"srvtoolu_p$n","name":"code_execution","input":{"code":"read($n)"}},` +
			`{"type":"tool_use","id":"toolu_p$n","name":"Read","input":{"file_path":"p$n.go"},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_p$n"}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_p$n","content":"package p$n"}]},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_q$n","name":"Read","input":{"file_path":"q$n.go"},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_p$n"}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_q$n","content":"package q$n"}]},` +
			`{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_p$n","content":{"type":"code_execution_result","stdout":"2 of $n","stderr":"","return_code":0,"content":[]}},{"type":"text","text":"Counted $n."}]}]`,
	},
	wire.Chat: {
		`[{"role":"assistant","content":null,"refusal":"I will not do $n."}]`,
		`[{"role":"assistant","content":"Reading.","reasoning_content":"$s","tool_calls":[{"id":"call_x$n","type":"function","function":{"name":"Read","arguments":"{\"path\":\"x\"}"}}]},{"role":"tool","tool_call_id":"call_x$n","content":"text of x"}]`,
		`[{"role":"user","content":[{"type":"text","text":"See $n."},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `","detail":"low"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQK"}}]}]`,
		`[{"role":"developer","content":"Rule $n."}]`,
	},
	wire.Responses: {
		`[{"type":"reasoning","id":"rs_$n","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"$s"},{"type":"function_call","id":"fc_$n","call_id":"call_r$n","name":"Bash","arguments":"{\"command\":\"ls\"}"},{"type":"function_call_output","call_id":"call_r$n","output":"a b"}]`,
		`[{"type":"web_search_call","id":"ws_$s$n","status":"completed","action":{"type":"search","query":"q $n"}},{"type":"message","role":"assistant","id":"msg_$n","status":"completed","content":[{"type":"output_text","text":"Found $n.","annotations":[]}]}]`,
		`[{"type":"compaction","id":"cmp_$n","encrypted_content":"$s"}]`,
		`[{"type":"program","id":"prog_$n","call_id":"call_g$n","code":"read($n)","fingerprint":"$s"},{"type":"function_call","id":"fc_g$n","call_id":"call_h$n","name":"Bash","arguments":"{\"command\":\"ls $n\"}","caller":{"type":"program","caller_id":"call_g$n"}},` +
			`{"type":"function_call_output","call_id":"call_h$n","output":"h $n"},{"type":"program_output","id":"po_$n","call_id":"call_g$n","result":"1 of $n"},{"type":"message","role":"assistant","id":"msg_g$n","status":"completed","content":[{"type":"output_text","text":"Ran $n.","annotations":[]}]}]`,
		`[{"type":"custom_tool_call","call_id":"call_p$n","name":"apply_patch","input":"*** Begin Patch $n"},{"type":"custom_tool_call_output","call_id":"call_p$n","output":"Done"}]`,
		`[{"role":"user","content":[{"type":"input_text","text":"Look $n."},{"type":"input_image","image_url":"https://example.com/$n.png","detail":"auto"},{"type":"input_file","file_id":"file_$n"}]}]`,
	},
	wire.Gemini: {
		`[{"role":"model","parts":[{"text":"let me see","thought":true,"thoughtSignature":"$s"},{"text":"Both."},{"functionCall":{"name":"Read","args":{"path":"g$n"}},"thoughtSignature":"$s"},{"functionCall":{"name":"Bash","args":{"command":"ls $n"}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"g $n"}}},{"functionResponse":{"name":"Bash","response":{"error":"no $n"}}}]}]`,
		`[{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"print($n)"},"thoughtSignature":"$s"},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"$n"}},{"text":"Ran $n."}]}]`,
		`[{"role":"user","parts":[{"text":"Watch $n."},{"inlineData":{"mimeType":"image/png","data":"` + pixel + `"}},{"fileData":{"mimeType":"video/mp4","fileUri":"https://example.com/$n.mp4"}}]}]`,
	},
}

// APIs are the four request APIs, in the order of their names.
var APIs = []string{wire.Anthropic, wire.Gemini, wire.Chat, wire.Responses}

// Vendor draws messages as they were read from a request to the API: parts
// with the bytes they came from, reasoning with seals, blocks that no other
// API has. n tells stretches of one thread apart.
func Vendor(t *rapid.T, api string, n int) []thread.Message {
	array := rapid.SampledFrom(vendor[api]).Draw(t, "stretch")
	seal := strings.ReplaceAll(Sealed(api), "=", "")
	array = strings.NewReplacer("$s", seal, "$n", fmt.Sprint(n)).Replace(array)
	messages, err := read(api, array)
	if err != nil {
		t.Fatalf("%s: %v", api, err)
	}
	// A provider without call ids counts calls through one request; here every
	// stretch is a request of its own.
	for i := range messages {
		messages[i].Parts = slices.Clone(messages[i].Parts)
		for k, p := range messages[i].Parts {
			switch p := p.(type) {
			case thread.ToolCall:
				if thread.IsLocalID(p.ID) {
					p.ID = fmt.Sprintf("%s_%d", p.ID, n)
				}
				messages[i].Parts[k] = p
			case thread.ToolResult:
				if thread.IsLocalID(p.CallID) {
					p.CallID = fmt.Sprintf("%s_%d", p.CallID, n)
				}
				messages[i].Parts[k] = p
			}
		}
	}
	return messages
}

func read(api, array string) (messages []thread.Message, err error) {
	switch api {
	case wire.Chat:
		messages, _, err = openai.DecodeChatMessages(array)
	case wire.Responses:
		messages, _, err = openai.DecodeItems(array)
	case wire.Gemini:
		messages, err = gemini.DecodeContents(array)
	default:
		var p, e = anthropic.Codec{}.Decode(`{"model":"m","max_tokens":1,"messages":` + array + `}`)
		if e != nil {
			return nil, e
		}
		messages = p.Messages
	}
	return messages, err
}
