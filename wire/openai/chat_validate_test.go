package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// chatProblems lists what the validator finds, as "path rule"; advice has a
// question mark.
func chatProblems(body string) []string {
	var list []string
	for _, p := range (openai.Chat{}).Validate([]byte(body)) {
		s := p.Path + " " + p.Rule
		if p.Advice {
			s += "?"
		}
		list = append(list, s)
	}
	return list
}

// TestChatValidateMessages has one broken body for each rule about messages,
// and its twin that keeps the rule. The lists are the elements of messages.
func TestChatValidateMessages(t *testing.T) {
	const (
		user  = `{"role":"user","content":"u"}`
		end   = `,` + user
		call  = `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`
		call2 = `{"id":"d","type":"function","function":{"name":"f","arguments":"{}"}}`
		asst  = `{"role":"assistant","content":null,"tool_calls":[` + call + `]}`
		both  = `{"role":"assistant","tool_calls":[` + call + `,` + call2 + `]}`
		tool  = `{"role":"tool","tool_call_id":"c","content":"t"}`
		tool2 = `{"role":"tool","tool_call_id":"d","content":""}`
		asked = `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`
	)
	withCall := func(call string) string { return `{"role":"assistant","tool_calls":[` + call + `]}` }
	parts := func(role, part string) string {
		return `{"role":"` + role + `","content":[` + part + `]}`
	}
	for _, tt := range []struct{ name, bad, problem, good string }{
		{"no message", ``, "messages empty", user},
		{"element", `1`, "messages[0] type", user},
		{"no role", `{"content":"u"}`, "messages[0].role required", user},
		{"role", `{"role":"model","content":"u"}`, "messages[0].role role", user},
		{"no content", `{"role":"user"}`, "messages[0].content required", `{"role":"user","content":""}`},
		{"null content", `{"role":"user","content":null}`, "messages[0].content content", user},
		{"null system", `{"role":"system","content":null}` + end, "messages[0].content content", `{"role":"developer","content":"d"},{"role":"system","content":"s"}` + end},
		{"number", `{"role":"user","content":1}`, "messages[0].content content", user},
		{"null tool", asst + `,{"role":"tool","tool_call_id":"c","content":null}`, "messages[1].content content", asst + "," + tool},
		{"silent assistant", `{"role":"assistant","content":null}` + end, "messages[0].content content", `{"role":"assistant","content":null,"refusal":"no"}` + end},
		{"absent content", `{"role":"assistant"}` + end, "messages[0].content content", `{"role":"assistant","audio":{"id":"a"}}` + end},
		{"null refusal", `{"role":"assistant","refusal":null}` + end, "messages[0].content content", `{"role":"assistant","refusal":null,"content":"x"}` + end},
		{"empty parts", `{"role":"user","content":[]}`, "messages[0].content empty", parts("user", `{"type":"text","text":"x"}`)},
		{"part", parts("user", `"x"`), "messages[0].content[0] type", parts("user", `{"type":"text","text":"x"}`)},
		{"part without type", parts("user", `{"text":"x"}`), "messages[0].content[0].type required", parts("user", `{"type":"text","text":"x"}`)},
		{"unknown part", parts("user", `{"type":"odd"}`), "messages[0].content[0].type part-type", parts("user", `{"type":"file","file":{"file_id":"f"}}`)},
		{"text", parts("user", `{"type":"text","text":1}`), "messages[0].content[0].text type", parts("user", `{"type":"text","text":""}`)},
		{"image in assistant", parts("assistant", `{"type":"image_url","image_url":{"url":"u"}}`) + end, "messages[0].content[0].type part-type", parts("user", `{"type":"image_url","image_url":{"url":"u"}}`)},
		{"image in tool", asst + `,{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"u"}}]}`, "messages[1].content[0].type part-type", asst + `,{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"u"}]}`},
		{"refusal in user", parts("user", `{"type":"refusal","refusal":"r"}`), "messages[0].content[0].type part-type", parts("assistant", `{"type":"refusal","refusal":"r"}`) + end},
		{"image url", parts("user", `{"type":"image_url","image_url":"u"}`), "messages[0].content[0].image_url type", parts("user", `{"type":"image_url","image_url":{"url":"u","detail":"low"}}`)},
		{"empty url", parts("user", `{"type":"image_url","image_url":{"url":""}}`), "messages[0].content[0].image_url.url empty", parts("user", `{"type":"image_url","image_url":{"url":"u"}}`)},
		{"detail", parts("user", `{"type":"image_url","image_url":{"url":"u","detail":"medium"}}`), "messages[0].content[0].image_url.detail value", parts("user", `{"type":"image_url","image_url":{"url":"u","detail":"auto"}}`)},
		{"audio format", parts("user", `{"type":"input_audio","input_audio":{"data":"AA==","format":"ogg"}}`), "messages[0].content[0].input_audio.format value", parts("user", `{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}`)},
		{"audio data", parts("user", `{"type":"input_audio","input_audio":{"format":"wav"}}`), "messages[0].content[0].input_audio.data required", parts("user", `{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}`)},
		{"file", parts("user", `{"type":"file","file":{}}`), "messages[0].content[0].file.file_data required", parts("user", `{"type":"file","file":{"filename":"a","file_data":"data:,"}}`)},
		{"file name", parts("user", `{"type":"file","file":{"file_data":"data:,"}}`), "messages[0].content[0].file.filename required", parts("user", `{"type":"file","file":{"filename":"a","file_data":"data:,"}}`)},
		{"name", `{"role":"user","name":"a b","content":"u"}`, "messages[0].name name", `{"role":"user","name":"a.b-ü","content":"u"}`},
		{"long name", `{"role":"user","name":"` + strings.Repeat("n", 65) + `","content":"u"}`, "messages[0].name name", `{"role":"user","name":"` + strings.Repeat("n", 64) + `","content":"u"}`},
		{"no calls", `{"role":"assistant","content":"x","tool_calls":[]}` + end, "messages[0].tool_calls compatible?", `{"role":"assistant","content":"x"}` + end},
		{"null calls", `{"role":"assistant","content":"x","tool_calls":null}` + end, "messages[0].tool_calls compatible?", `{"role":"assistant","content":"x","function_call":null}` + end},
		{"call", withCall(`1`), "messages[0].tool_calls[0] type", withCall(call) + "," + tool},
		{"no id", withCall(`{"type":"function","function":{"name":"f","arguments":"{}"}}`), "messages[0].tool_calls[0].id required", withCall(call) + "," + tool},
		{"empty id", withCall(`{"id":"","type":"function","function":{"name":"f","arguments":"{}"}}`), "messages[0].tool_calls[0].id empty", withCall(call) + "," + tool},
		{
			"long id", strings.ReplaceAll(withCall(call)+","+tool, `"c"`, `"`+strings.Repeat("c", 41)+`"`), "messages[0].tool_calls[0].id id",
			strings.ReplaceAll(withCall(call)+","+tool, `"c"`, `"`+strings.Repeat("c", 40)+`"`),
		},
		{"same id", withCall(call+","+call) + "," + tool, "messages[0].tool_calls[1].id id", both + "," + tool + "," + tool2},
		{"no call type", withCall(`{"id":"c","function":{"name":"f","arguments":"{}"}}`) + "," + tool, "messages[0].tool_calls[0].type required", withCall(call) + "," + tool},
		{"call type", withCall(`{"id":"c","type":"odd"}`) + "," + tool, "messages[0].tool_calls[0].type compatible?", withCall(`{"id":"c","type":"custom","custom":{"name":"f","input":""}}`) + "," + tool},
		{"no function", withCall(`{"id":"c","type":"function"}`) + "," + tool, "messages[0].tool_calls[0].function type", withCall(call) + "," + tool},
		{"custom input", withCall(`{"id":"c","type":"custom","custom":{"name":"f"}}`) + "," + tool, "messages[0].tool_calls[0].custom.input required", withCall(`{"id":"c","type":"custom","custom":{"name":"f","input":"x"}}`) + "," + tool},
		{"function name", withCall(strings.Replace(call, `"f"`, `"a.b"`, 1)) + "," + tool, "messages[0].tool_calls[0].function.name name", withCall(strings.Replace(call, `"f"`, `"a-B_9"`, 1)) + "," + tool},
		{"arguments", withCall(strings.Replace(call, `"{}"`, `{}`, 1)) + "," + tool, "messages[0].tool_calls[0].function.arguments type", withCall(call) + "," + tool},
		{"odd arguments", withCall(strings.Replace(call, `"{}"`, `"{"`, 1)) + "," + tool, "messages[0].tool_calls[0].function.arguments arguments?", withCall(call) + "," + tool},
		{"no answer", asst + end, "messages[0].tool_calls[0].id tool-pairing", asst + "," + tool + end},
		{"one answer of two", both + "," + tool + end, "messages[0].tool_calls[1].id tool-pairing", both + "," + tool2 + "," + tool + end},
		{"answer too late", asst + end + "," + tool, "messages[0].tool_calls[0].id tool-pairing|messages[2].tool_call_id tool-pairing", asst + "," + tool + end},
		{"no answer at the end", user + "," + asst, "messages[1].tool_calls[0].id tool-pairing", user + "," + asst + "," + tool},
		{"orphan", user + "," + tool, "messages[1].tool_call_id tool-pairing", asst + "," + tool},
		{"other id", both + "," + tool + "," + tool2 + `,{"role":"tool","tool_call_id":"e","content":""}`, "messages[3].tool_call_id tool-pairing", both + "," + tool + "," + tool2},
		{"answered twice", asst + "," + tool + "," + tool, "messages[2].tool_call_id tool-pairing", asst + "," + tool},
		{"no tool_call_id", asst + `,` + tool + `,{"role":"tool","content":""}`, "messages[2].tool_call_id required", asst + "," + tool},
		{"function orphan", user + `,{"role":"function","name":"f","content":""}`, "messages[1].name tool-pairing", asked + `,{"role":"function","name":"f","content":""}`},
		{"function of another name", asked + `,{"role":"function","name":"g","content":""}`, "messages[1].name tool-pairing", asked + `,{"role":"function","name":"f","content":null}`},
		{"function without name", asked + `,{"role":"function","content":""}`, "messages[1].name required", asked + `,{"role":"function","name":"f","content":""}`},
		{"function parts", asked + `,{"role":"function","name":"f","content":[]}`, "messages[1].content type", asked + `,{"role":"function","name":"f","content":""}`},
		{"function_call", `{"role":"assistant","function_call":"f"}` + end, "messages[0].function_call type", asked + end},
		{"function_call name", `{"role":"assistant","function_call":{"arguments":""}}` + end, "messages[0].function_call.name required|messages[0].function_call.arguments arguments?", asked + end},
		{"prefill", user + `,{"role":"assistant","content":"x"}`, "messages[1] last-message?", user},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wrap := func(messages string) string { return `{"model":"m","messages":[` + messages + `]}` }
			if diff := cmp.Diff(strings.Split(tt.problem, "|"), chatProblems(wrap(tt.bad))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := chatProblems(wrap(tt.good)); got != nil {
				t.Errorf("the valid twin: %v", got)
			}
		})
	}
}

// TestChatValidateBody does the same for the other fields; the bodies are
// written after "messages".
func TestChatValidateBody(t *testing.T) {
	const (
		tools = `,"tools":[{"type":"function","function":{"name":"f"}}]`
		funcs = `,"functions":[{"name":"f"}]`
		model = `,"model":"m"`
	)
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"type":"function","function":{"name":"f%d"}},`, i)
		}
		return model + `,"tools":[` + strings.TrimSuffix(b.String(), ",") + `]`
	}
	tool := func(fields string) string {
		return model + `,"tools":[{"type":"function","function":{"name":"f"` + fields + `}}]`
	}
	for _, tt := range []struct{ name, bad, problem, good string }{
		{"no model", ``, "model required", model},
		{"model", `,"model":""`, "model empty", model},
		{"model type", `,"model":1`, "model type", model},
		{"twice", model + model, "model duplicate?", model},
		{"no tools", model + `,"tools":[]`, "tools empty", model},
		{"tools", model + `,"tools":null`, "tools type", model + tools},
		{"tool", model + `,"tools":["f"]`, "tools[0] type", model + tools},
		{"tool type", model + `,"tools":[{"type":"web_search"}]`, "tools[0].type compatible?", model + `,"tools":[{"type":"custom","custom":{"name":"f"}}]`},
		{"no tool type", model + `,"tools":[{"function":{"name":"f"}}]`, "tools[0].type required", model + tools},
		{"tool body", model + `,"tools":[{"type":"function","name":"f"}]`, "tools[0].function type", model + tools},
		{"tool name", model + `,"tools":[{"type":"function","function":{"name":"a.b"}}]`, "tools[0].function.name name", model + tools},
		{"long tool name", model + `,"tools":[{"type":"function","function":{"name":"` + strings.Repeat("f", 65) + `"}}]`, "tools[0].function.name name", model + tools},
		{"description", tool(`,"description":1`), "tools[0].function.description type", tool(`,"description":""`)},
		{"parameters", tool(`,"parameters":"{}"`), "tools[0].function.parameters type", tool(`,"parameters":{}`)},
		{"parameters type", tool(`,"parameters":{"type":"string"}`), "tools[0].function.parameters.type value", tool(`,"parameters":{"type":"object"}`)},
		{"strict", tool(`,"strict":1`), "tools[0].function.strict type", tool(`,"strict":null`)},
		{"same tool", model + `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"f"}}]`, "tools[1] name", list(2)},
		{"many tools", list(129), "tools limit", list(128)},
		{"functions and tools", model + tools + funcs, "functions tools", model + funcs},
		{"function", model + `,"functions":[{}]`, "functions[0].name required", model + funcs},
		{"choice alone", model + `,"tool_choice":"auto"`, "tool_choice tools", model + tools + `,"tool_choice":"auto"`},
		{"choice", model + tools + `,"tool_choice":"any"`, "tool_choice value", model + tools + `,"tool_choice":"required"`},
		{"choice type", model + tools + `,"tool_choice":1`, "tool_choice type", model + tools + `,"tool_choice":"none"`},
		{"choice of another tool", model + tools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`, "tool_choice.function.name tools", `,"tool_choice":{"type":"function","function":{"name":"f"}}` + model + tools},
		{"choice of odd type", model + tools + `,"tool_choice":{"type":"odd"}`, "tool_choice.type compatible?", model + tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{}}`},
		{"parallel alone", model + `,"parallel_tool_calls":false`, "parallel_tool_calls tools", model + tools + `,"parallel_tool_calls":false`},
		{"function_call alone", model + tools + `,"function_call":"auto"`, "function_call tools", model + funcs + `,"function_call":"auto"`},
		{"limit", model + `,"max_tokens":0`, "max_tokens limit", model + `,"max_tokens":1`},
		{"limit type", model + `,"max_completion_tokens":1.5`, "max_completion_tokens type", model + `,"max_completion_tokens":null`},
		{"two limits", model + `,"max_tokens":1,"max_completion_tokens":1`, "max_tokens limit", model + `,"max_tokens":null,"max_completion_tokens":1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wrap := func(fields string) string { return `{"messages":[{"role":"user","content":"u"}]` + fields + `}` }
			if diff := cmp.Diff([]string{tt.problem}, chatProblems(wrap(tt.bad))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := chatProblems(wrap(tt.good)); got != nil {
				t.Errorf("the valid twin: %v", got)
			}
		})
	}
	for body, want := range map[string]string{
		`{`: "body json", `[]`: "body json", `{"model":"m"}`: "messages required", `{"model":"m","messages":{}}`: "messages type",
	} {
		if got := chatProblems(body); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
