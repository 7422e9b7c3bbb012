package openai

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Every rule with the smallest body that breaks it and its valid twin. A body
// that starts with [ is an input.
func TestResponsesRules(t *testing.T) {
	const (
		call    = `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`
		output  = `{"type":"function_call_output","call_id":"c","output":""}`
		user    = `{"role":"user","content":"a"}`
		said    = `{"role":"assistant","content":"b"}`
		program = `{"type":"program","id":"p","call_id":"p","code":"f()","fingerprint":"f"}`
		nested  = `{"type":"function_call","call_id":"c","name":"f","arguments":"{}","caller":{"type":"program","caller_id":"p"}}`
		ended   = `{"type":"program_output","id":"o","call_id":"p","result":"1"}`
		spawn   = `{"type":"multi_agent_call","call_id":"m","action":"spawn_agent","arguments":"{}"}`
		reason  = `{"type":"reasoning","summary":[],"encrypted_content":"e"}`
	)
	long := strings.Repeat("x", 65)
	tests := []struct{ rule, path, bad, good string }{
		{"json", "body", `{"model":"m","input":"a",}`, `{"model":"m","input":"a"}`},
		{"json", "body", `"a"`, `{"model":"m","input":"a"}`},
		{"required", "model", `{"input":"a"}`, `{"prompt":{"id":"pmpt_1"},"input":"a"}`},
		{"required", "model", `{"model":"","input":"a"}`, `{"model":"m","input":"a"}`},
		{"required", "input", `{"model":"m"}`, `{"model":"m","previous_response_id":"resp_1"}`},
		{"required", "input", `{"model":"m","input":[]}`, `{"model":"m","input":[],"conversation":"conv_1"}`},
		{"type", "input", `{"model":"m","input":{}}`, `{"model":"m","input":"a"}`},
		{"type", "input[0]", `["a"]`, `[` + user + `]`},
		{"type", "instructions", `{"model":"m","input":"a","instructions":[]}`, `{"model":"m","input":"a","instructions":null}`},
		{"one-history", "conversation", `{"model":"m","input":"a","previous_response_id":"r","conversation":"c"}`, `{"model":"m","input":"a","conversation":"c"}`},
		{"max-output", "max_output_tokens", `{"model":"m","input":"a","max_output_tokens":0}`, `{"model":"m","input":"a","max_output_tokens":16}`},
		{"max-output", "max_output_tokens", `{"model":"m","input":"a","max_output_tokens":1.5}`, `{"model":"m","input":"a","max_output_tokens":null}`},
		{"compact-threshold", "context_management[0].compact_threshold", `{"model":"m","input":"a","context_management":[{"type":"compaction","compact_threshold":999}]}`, `{"model":"m","input":"a","context_management":[{"type":"compaction","compact_threshold":1000}]}`},
		{"required", "context_management[0].type", `{"model":"m","input":"a","context_management":[{}]}`, `{"model":"m","input":"a","context_management":[{"type":"compaction"}]}`},
		{"type", "context_management", `{"model":"m","input":"a","context_management":{}}`, `{"model":"m","input":"a","context_management":[]}`},

		{"type", "tools", `{"model":"m","input":"a","tools":{}}`, `{"model":"m","input":"a","tools":[]}`},
		{"type", "tools[0]", `{"model":"m","input":"a","tools":[1]}`, `{"model":"m","input":"a","tools":[{"type":"web_search"}]}`},
		{"required", "tools[0].type", `{"model":"m","input":"a","tools":[{"name":"f"}]}`, `{"model":"m","input":"a","tools":[{"type":"custom","name":"f"}]}`},
		{"required", "tools[0].name", `{"model":"m","input":"a","tools":[{"type":"function","function":{"name":"f"}}]}`, `{"model":"m","input":"a","tools":[{"type":"function","name":"f"}]}`},
		{"type", "tools[0].parameters", `{"model":"m","input":"a","tools":[{"type":"function","name":"f","parameters":"{}"}]}`, `{"model":"m","input":"a","tools":[{"type":"function","name":"f","parameters":{}}]}`},
		{"name", "tools[0].name", `{"model":"m","input":"a","tools":[{"type":"function","name":"f.g"}]}`, `{"model":"m","input":"a","tools":[{"type":"function","name":"f-g_1"}]}`},
		{"name", "tools[0].name", `{"model":"m","input":"a","tools":[{"type":"function","name":"` + long + `"}]}`, `{"model":"m","input":"a","tools":[{"type":"function","name":"` + long[1:] + `"}]}`},
		{"unique-tools", "tools[1].name", `{"model":"m","input":"a","tools":[{"type":"function","name":"f"},{"type":"custom","name":"f"}]}`, `{"model":"m","input":"a","tools":[{"type":"function","name":"f"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]}`},
		{"name", "tools[0].tools[0].name", `{"model":"m","input":"a","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"é"}]}]}`, `{"model":"m","input":"a","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"e"}]}]}`},

		{"role", "input[0].role", `[{"role":"tool","content":"a"}]`, `[{"role":"developer","content":"a"}]`},
		{"required", "input[0].content", `[{"role":"user"}]`, `[` + user + `]`},
		{"type", "input[0].content", `[{"role":"user","content":{}}]`, `[{"role":"user","content":""}]`},
		{"empty-content", "input[0].content", `[{"role":"user","content":[]}]`, `[{"role":"user","content":[{"type":"input_text","text":""}]}]`},
		{"type", "input[0].content[0]", `[{"role":"user","content":["a"]}]`, `[{"role":"user","content":[{"type":"input_text","text":"a"}]}]`},
		{"required", "input[0].content[0].type", `[{"role":"user","content":[{"text":"a"}]}]`, `[{"role":"user","content":[{"type":"input_text","text":"a"}]}]`},
		{"content-type", "input[0].content[0].type", `[{"role":"user","content":[{"type":"text","text":"a"}]}]`, `[{"role":"user","content":[{"type":"input_text","text":"a"}]}]`},
		{"content-type", "input[0].content[0].type", `[{"role":"system","content":[{"type":"output_text","text":"a"}]}]`, `[{"role":"system","content":[{"type":"input_text","text":"a"}]}]`},
		{"content-type", "input[0].content[0].type", `[{"role":"assistant","content":[{"type":"input_text","text":"a"}]},` + user + `]`, `[{"role":"assistant","content":[{"type":"refusal","refusal":"a"}]},` + user + `]`},
		{"required", "input[0].content[0].text", `[{"role":"user","content":[{"type":"input_text"}]}]`, `[{"role":"user","content":[{"type":"input_text","text":"a"}]}]`},
		{"required", "input[0].content[0].refusal", `[{"role":"assistant","content":[{"type":"refusal","text":"a"}]},` + user + `]`, `[{"role":"assistant","content":[{"type":"refusal","refusal":"a"}]},` + user + `]`},
		{"required", "input[0].content[0].image_url", `[{"role":"user","content":[{"type":"input_image","image_url":{"url":"u"}}]}]`, `[{"role":"user","content":[{"type":"input_image","image_url":"u"}]}]`},
		{"required", "input[0].content[0].file_id", `[{"role":"user","content":[{"type":"input_file","filename":"a"}]}]`, `[{"role":"user","content":[{"type":"input_file","file_url":"u"}]}]`},
		{"required", "input[0].content[0].input_audio", `[{"role":"user","content":[{"type":"input_audio"}]}]`, `[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"A","format":"wav"}}]}]`},

		{"required", "input[0].type", `[{"text":"a"}]`, `[` + user + `]`},
		{"required", "input[0].name", `[{"type":"function_call","call_id":"c","arguments":"{}"},` + output + `]`, `[` + call + `,` + output + `]`},
		{"type", "input[0].arguments", `[{"type":"function_call","call_id":"c","name":"f","arguments":{}},` + output + `]`, `[` + call + `,` + output + `]`},
		{"name", "input[0].name", `[{"type":"function_call","call_id":"c","name":"n.f","arguments":"{}"},` + output + `]`, `[{"type":"function_call","call_id":"c","namespace":"n","name":"f","arguments":"{}"},` + output + `]`},
		{"type", "input[1].output", `[` + call + `,{"type":"function_call_output","call_id":"c","output":{}}]`, `[` + call + `,{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}]`},
		{"content-type", "input[1].output[0].type", `[` + call + `,{"type":"function_call_output","call_id":"c","output":[{"type":"output_text","text":"a"}]}]`, `[` + call + `,{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","file_id":"file-1"}]}]`},
		{"required", "input[0].input", `[{"type":"custom_tool_call","call_id":"c","name":"f"},{"type":"custom_tool_call_output","call_id":"c","output":""}]`, `[{"type":"custom_tool_call","call_id":"c","name":"f","input":""},{"type":"custom_tool_call_output","call_id":"c","output":""}]`},
		{"required", "input[0].action.commands", `[{"type":"shell_call","call_id":"c","action":{}},{"type":"shell_call_output","call_id":"c","output":[]}]`, `[{"type":"shell_call","call_id":"c","action":{"commands":[]}},{"type":"shell_call_output","call_id":"c","output":[]}]`},
		{"value", "input[1].status", `[{"type":"apply_patch_call","call_id":"c","operation":{}},{"type":"apply_patch_call_output","call_id":"c","status":"done"}]`, `[{"type":"apply_patch_call","call_id":"c","operation":{}},{"type":"apply_patch_call_output","call_id":"c","status":"failed"}]`},
		{"required", "input[1].call_id", `[` + user + `,{"type":"local_shell_call_output","output":""}]`, `[{"type":"local_shell_call","call_id":"c","action":{}},{"type":"local_shell_call_output","id":"c","output":""}]`},
		{"required", "input[0].action", `[{"type":"computer_call","call_id":"c"},{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","file_id":"f"}}]`, `[{"type":"computer_call","call_id":"c","actions":[]},{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","file_id":"f"}}]`},
		{"content-type", "input[1].output.type", `[{"type":"computer_call","call_id":"c","action":{}},{"type":"computer_call_output","call_id":"c","output":{"type":"input_image","image_url":"u"}}]`, `[{"type":"computer_call","call_id":"c","action":{}},{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"u"}}]`},
		{"required", "input[1].output.image_url", `[{"type":"computer_call","call_id":"c","action":{}},{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot"}}]`, `[{"type":"computer_call","call_id":"c","action":{}},{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"u"}}]`},
		{"required", "input[0].encrypted_content", `[{"type":"compaction"},` + user + `]`, `[{"type":"compaction","encrypted_content":"e"},` + user + `]`},
		{"trigger-last", "input[0]", `[{"type":"compaction_trigger"},` + user + `]`, `[` + user + `,{"type":"compaction_trigger"}]`},
		{"required", "input[0].summary", `[{"type":"reasoning"},` + said + `,` + user + `]`, `[` + reason + `,` + said + `,` + user + `]`},
		{"content-type", "input[0].summary[0]", `[{"type":"reasoning","summary":[{"type":"text","text":"a"}]},` + said + `,` + user + `]`, `[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]},` + said + `,` + user + `]`},
		{"reasoning-follower", "input[0]", `[` + reason + `]`, `[` + reason + `,` + said + `,` + user + `]`},
		{"reasoning-follower", "input[0]", `[` + reason + `,` + user + `]`, `[` + reason + `,` + call + `,` + output + `]`},
		{"reasoning-follower", "input[2]", `[` + call + `,` + output + `,` + reason + `,` + output + `]`, `[` + program + `,` + nested + `,` + output + `,` + reason + `,` + ended + `,` + user + `]`},
		{"item-id", "input[0].id", `[{"type":"function_call","id":"call_1","call_id":"c","name":"f","arguments":"{}"},` + output + `]`, `[{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"},` + output + `]`},
		{"item-id", "input[1].id", `[{"role":"user","id":"msg_1","content":"a"},{"role":"user","id":"msg_1","content":"b"}]`, `[{"role":"user","id":"msg_1","content":"a"},{"role":"user","id":"msg_2","content":"b"}]`},
		{"item-id", "input[0].id", `[{"role":"user","id":"msg_` + long + `","content":"a"}]`, `[{"role":"user","id":"msg_1","content":"a"}]`},

		{"call-id", "input[0].call_id", strings.ReplaceAll(`[`+call+`,`+output+`]`, `"c"`, `"`+long+`"`), strings.ReplaceAll(`[`+call+`,`+output+`]`, `"c"`, `"`+long[1:]+`"`)},
		{"tool-pairing", "input[0].call_id", `[` + call + `]`, `[` + call + `,` + output + `]`},
		{"tool-pairing", "input[0].call_id", `[` + call + `,` + user + `]`, `[` + call + `,` + output + `,` + user + `]`},
		{"tool-pairing", "input[0].call_id", `[` + output + `]`, `{"model":"m","previous_response_id":"resp_1","input":[` + output + `]}`},
		{"tool-pairing", "input[0].call_id", `[` + output + `,` + call + `]`, `[` + call + `,` + output + `]`},
		{"tool-pairing", "input[1].call_id", `[` + call + `,` + call + `,` + output + `]`, `[` + call + `,` + output + `]`},
		{"tool-pairing", "input[2].call_id", `[` + call + `,` + output + `,` + output + `]`, `[` + call + `,` + output + `]`},
		{"tool-pairing", "input[1].call_id", `[` + call + `,{"type":"custom_tool_call_output","call_id":"c","output":""}]`, `[{"type":"local_shell_call","call_id":"c","action":{}},` + output + `]`},
		{"tool-pairing", "input[1].approval_request_id", `[` + user + `,{"type":"mcp_approval_response","approval_request_id":"a","approve":true}]`, `[{"type":"mcp_approval_request","id":"a","server_label":"s","name":"n","arguments":"{}"},{"type":"mcp_approval_response","approval_request_id":"a","approve":true}]`},
		{"caller", "input[0].caller", `[` + nested + `,` + output + `]`, `[` + program + `,` + nested + `,` + output + `]`},
		{"caller", "input[0].caller", `[` + nested + `,` + output + `,` + program + `]`, `[` + program + `,` + nested + `,` + output + `,` + ended + `,` + user + `]`},
		{"caller", "input[0].caller", `[` + strings.ReplaceAll(nested, `function_call`, `custom_tool_call`) + `,` + user + `]`, `{"model":"m","previous_response_id":"r","input":[` + nested + `,` + output + `]}`},
		{"caller", "input[1].caller", `[` + spawn + `,` + nested + `,` + output + `]`, `[` + program + `,` + spawn + `,` + nested + `,` + output + `]`},
		{"caller", "input[1].caller", `[` + call + `,{"type":"function_call_output","call_id":"c","output":"","caller":{"type":"program","caller_id":"p"}}]`, `[{"type":"function_call","call_id":"c","name":"f","arguments":"{}","caller":{"type":"direct"}},` + output + `]`},
		{"tool-pairing", "input[0].call_id", `[` + ended + `,` + user + `]`, `{"model":"m","conversation":"r","input":[` + ended + `,` + user + `]}`},
		{"tool-pairing", "input[1].call_id", `[` + user + `,{"type":"multi_agent_call_output","call_id":"m","action":"spawn_agent","output":[]}]`, `[` + spawn + `,{"type":"multi_agent_call_output","call_id":"m","action":"spawn_agent","output":[]},` + user + `]`},
		{"required", "input[0].tools", `[{"type":"additional_tools","role":"developer"},` + user + `]`, `[` + user + `,{"type":"additional_tools","role":"developer","tools":[]}]`},
		{"name", "input[0].tools[0].name", `[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"a.b"}]},` + user + `]`, `[{"type":"configuration_update","reasoning":{"effort":"low"}},` + user + `]`},
		{"required", "input[0].code", `[{"type":"program","id":"p","call_id":"p"},` + ended + `,` + user + `]`, `[` + program + `,` + ended + `,` + user + `]`},
		{"required", "input[0].content", `[{"type":"agent_message","author":"a","recipient":"b"},` + user + `]`, `[{"type":"agent_message","author":"a","recipient":"b","content":[{"type":"encrypted_content","encrypted_content":"e"}]},` + user + `]`},
		{"tool-pairing", "input[1].call_id", `{"model":"m","previous_response_id":"r","input":[` + output + `,` + output + `]}`, `{"model":"m","previous_response_id":"r","input":[` + output + `]}`},
	}
	for _, test := range tests {
		wrap := func(body string) []byte {
			if strings.HasPrefix(body, "[") {
				body = `{"model":"m","input":` + body + `}`
			}
			return []byte(body)
		}
		found := false
		problems := (Responses{}).Validate(wrap(test.bad))
		for _, p := range problems {
			if !p.Advice && p.Rule == test.rule && p.Path == test.path {
				found = p.Message != ""
			}
		}
		if !found {
			t.Errorf("%s: want %s at %s, got %v", test.bad, test.rule, test.path, problems)
		}
		for _, p := range (Responses{}).Validate(wrap(test.good)) {
			if !p.Advice {
				t.Errorf("%s: want nothing, got %v", test.good, p)
			}
		}
	}
}

// What OpenAI takes, although it is likely a mistake.
func TestResponsesAdvice(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`:                                                 "input[1] ends-with-assistant",
		`{"model":"m","store":false,"input":[{"type":"reasoning","summary":[]},{"role":"assistant","content":"b"},{"role":"user","content":"a"}]}`: "input[0].encrypted_content reasoning-encrypted",
		`{"model":"m","input":[{"type":"dream"},{"role":"user","content":"a"}]}`:                                                                   "input[0].type item-type",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_smell"}]}]}`:                                                               "input[0].content[0].type content-type",
		`{"model":"m","store":false,"input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"a"}]}`:                               "input[0] item-reference",
		`{"model":"m","input":"a","max_output_tokens":15}`:                                                                                         "max_output_tokens max-output",
	} {
		problems := (Responses{}).Validate([]byte(body))
		if len(problems) != 1 || !problems[0].Advice || problems[0].Path+" "+problems[0].Rule != want {
			t.Errorf("%s: want %s as advice, got %+v", body, want, problems)
		}
	}
}

func TestResponsesProblemsAreInDocumentOrder(t *testing.T) {
	body := `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"role":"x"},{"type":"function_call_output","call_id":"d","output":""}]}`
	var got []string
	for _, p := range (Responses{}).Validate([]byte(body)) {
		got = append(got, p.Path)
	}
	if want := "input[0].call_id input[1].role input[2].call_id"; strings.Join(got, " ") != want {
		t.Errorf("want %s, got %v", want, got)
	}
}

// Every real request is one that OpenAI took.
func TestResponsesCorpusIsValid(t *testing.T) {
	for name, body := range wiretest.Corpus(t, wire.Responses) {
		for _, p := range (Responses{}).Validate(body) {
			if !p.Advice {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
}
