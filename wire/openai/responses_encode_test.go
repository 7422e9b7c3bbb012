package openai

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// responsesInputOf returns the items of a body, one a line.
func responsesInputOf(body string) []string {
	var items []string
	gjson.Get(body, "input").ForEach(func(_, item gjson.Result) bool {
		items = append(items, item.Raw)
		return true
	})
	return items
}

// responsesRebuilt returns the message as a renderer makes a changed one.
func responsesRebuilt(m thread.Message, parts ...thread.Part) thread.Message {
	return thread.Message{Role: m.Role, Parts: parts}
}

func responsesNoProblems(t *testing.T, body string) {
	t.Helper()
	for _, p := range (Responses{}).Validate([]byte(body)) {
		if !p.Advice {
			t.Errorf("%v\n%s", p, body)
		}
	}
}

const (
	responsesUserItem = `{"role":"user","content":"go"}`
	responsesR1       = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e1"}`
	responsesMsg1     = `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"I read."}]}`
	responsesCall1    = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}`
	responsesR2       = `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"e2"}`
	responsesSearch   = `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`
	responsesMsg2     = `{"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"Found."}]}`
	responsesOutput1  = `{"type":"function_call_output","call_id":"c1","output":"done"}`
)

// OpenAI refuses reasoning without its item, and items with an id without
// their reasoning.
func TestResponsesReasoningGoesWithItsItem(t *testing.T) {
	drop := func(kinds ...string) func(thread.Part) thread.Part {
		return func(p thread.Part) thread.Part {
			if slices.ContainsFunc(kinds, func(k string) bool { return strings.Contains(p.From().Raw, `"`+k+`"`) }) {
				return nil
			}
			return p
		}
	}
	without := func(item string) string {
		out := item
		for _, id := range []string{`"id":"msg_1",`, `"id":"fc_1",`, `"id":"msg_2",`} {
			out = strings.Replace(out, id, "", 1)
		}
		return out
	}
	run := []string{responsesR1, responsesMsg1, responsesCall1, responsesR2, responsesSearch, responsesMsg2}
	tests := map[string]struct {
		run  []string
		edit func(thread.Part) thread.Part
		want []string
	}{
		"nothing gone": {run, drop(), run},
		"both reasonings gone": {run, drop("rs_1", "rs_2"),
			[]string{without(responsesMsg1), without(responsesCall1), without(responsesMsg2)}},
		"first reasoning gone": {run, drop("rs_1"),
			[]string{without(responsesMsg1), without(responsesCall1), responsesR2, responsesSearch, responsesMsg2}},
		"its message gone": {run, drop("msg_1"),
			[]string{without(responsesCall1), responsesR2, responsesSearch, responsesMsg2}},
		"its search gone": {run, drop("ws_1"),
			[]string{responsesR1, responsesMsg1, responsesCall1, without(responsesMsg2)}},
		"a later item gone": {run, drop("fc_1"),
			[]string{responsesR1, responsesMsg1, responsesR2, responsesSearch, responsesMsg2}},
		"arguments shortened": {[]string{responsesR1, responsesMsg1, responsesCall1},
			func(p thread.Part) thread.Part {
				if c, ok := p.(thread.ToolCall); ok {
					return thread.ToolCall{ID: c.ID, Name: c.Name, Arguments: `{"cut":true}`}
				}
				return p
			},
			[]string{responsesR1, responsesMsg1, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"cut\":true}"}`}},
		"all but reasoning gone": {[]string{responsesR1, responsesMsg1}, drop("msg_1"), nil},
		"no reasoning ever": {[]string{responsesMsg1, responsesSearch, responsesCall1}, drop("msg_1"),
			[]string{responsesSearch, responsesCall1}},
		"reasoning in a row": {[]string{responsesR1, responsesR2, responsesMsg1}, drop("msg_1"), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			items := append([]string{responsesUserItem}, test.run...)
			items = append(items, responsesOutput1, responsesUserItem)
			p := responsesDecode(t, `{"model":"m","store":false,"input":[`+strings.Join(items, ",")+`]}`)
			var parts []thread.Part
			for _, part := range p.Messages[1].Parts {
				if part = test.edit(part); part != nil {
					parts = append(parts, part)
				}
			}
			p.Messages[1] = responsesRebuilt(p.Messages[1], parts...)
			want := append([]string{responsesUserItem}, test.want...)
			want = append(want, responsesOutput1, responsesUserItem)
			if diff := cmp.Diff(want, responsesInputOf(responsesEncode(t, p))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}

			// The same without the body at hand: what cannot be known is left out.
			p.Source = nil
			for _, problem := range (Responses{}).Validate([]byte(responsesEncode(t, p))) {
				if !problem.Advice && problem.Rule != "tool-pairing" {
					t.Errorf("translated: %v", problem)
				}
			}
		})
	}
}

// A changed result is written in the form that its call asks for.
func TestResponsesChangedResults(t *testing.T) {
	p := responsesDecode(t, responsesZoo)
	var want []string
	for i, m := range p.Messages {
		r, ok := m.Result()
		if !ok {
			continue
		}
		changed := thread.ToolResult{CallID: r.CallID, Tool: r.Tool, Outcome: r.Outcome, Content: []thread.Part{thread.Text{Text: "<cut>"}}}
		p.Messages[i] = responsesRebuilt(m, changed)
	}
	want = []string{
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"[call computer: {\"type\":\"screenshot\"}]"}]}`,
		`{"type":"function_call_output","call_id":"c1","output":"<cut>"}`,
		`{"type":"function_call_output","call_id":"c2","output":"<cut>"}`,
		`{"type":"custom_tool_call_output","call_id":"c3","output":"<cut>"}`,
		`{"type":"local_shell_call_output","call_id":"c4","output":"<cut>"}`,
		`{"type":"shell_call_output","call_id":"c5","output":[{"stdout":"<cut>","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`,
		`{"type":"apply_patch_call_output","call_id":"c6","status":"failed","output":"<cut>"}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"[result of computer]\n<cut>"}]}`,
		`{"type":"tool_search_output","call_id":"c8","execution":"client","status":"completed","tools":[]}`,
		`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false}`,
	}
	body := responsesEncode(t, p)
	items := responsesInputOf(body)
	for _, item := range want {
		if !slices.Contains(items, item) {
			t.Errorf("missing %s", item)
		}
	}
	if strings.Contains(body, `"computer_call"`) {
		t.Error("a computer call without a screenshot was sent")
	}
	responsesNoProblems(t, body)

	// A screenshot that is still there is sent.
	p = responsesDecode(t, responsesZoo)
	at := slices.IndexFunc(p.Messages, func(m thread.Message) bool { r, _ := m.Result(); return r.CallID == "c7" })
	r, _ := p.Messages[at].Result()
	p.Messages[at] = responsesRebuilt(p.Messages[at], thread.ToolResult{CallID: "c7", Content: r.Content})
	if body := responsesEncode(t, p); !strings.Contains(body, `{"type":"computer_call_output","call_id":"c7","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,EEEE"}}`) {
		t.Errorf("the screenshot is gone: %s", body)
	}
}

// A changed call keeps its type, its namespace and its id.
func TestResponsesChangedCalls(t *testing.T) {
	p := responsesDecode(t, responsesZoo)
	var parts []thread.Part
	for _, part := range p.Messages[1].Parts {
		if c, ok := part.(thread.ToolCall); ok {
			part = thread.ToolCall{ID: c.ID, Name: c.Name, Type: c.Type, Arguments: c.Arguments}
		}
		parts = append(parts, part)
	}
	p.Messages[1] = responsesRebuilt(p.Messages[1], parts...)
	body := responsesEncode(t, p)
	items := responsesInputOf(body)
	for _, item := range []string{
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}`,
		`{"type":"function_call","call_id":"c2","name":"ask","namespace":"team","arguments":"{}"}`,
		`{"type":"custom_tool_call","call_id":"c3","name":"patch","input":"*** Begin"}`,
		`{"type":"local_shell_call","call_id":"c4","action":{"type":"exec","command":["ls"]},"status":"completed"}`,
		`{"type":"shell_call","call_id":"c5","action":{"commands":["ls"]},"status":"completed"}`,
		`{"type":"apply_patch_call","call_id":"c6","operation":{"type":"delete_file","path":"a"},"status":"completed"}`,
		`{"type":"computer_call","call_id":"c7","action":{"type":"screenshot"},"pending_safety_checks":[],"status":"completed"}`,
		`{"type":"tool_search_call","call_id":"c8","execution":"client","arguments":{"q":"x"},"status":"completed"}`,
		// An approval lost its server and is told in words, with its answer.
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"[call rm: {}]"}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"[result of rm]\napprove: false"}]}`,
	} {
		if !slices.Contains(items, item) {
			t.Errorf("missing %s\nin %s", item, strings.Join(items, "\n"))
		}
	}
	responsesNoProblems(t, body)
}

// Of a message item with several content parts any may go.
func TestResponsesContentPartsOfAnItem(t *testing.T) {
	const item = `{"type":"message","id":"msg_1","role":"assistant","content":[ {"type":"output_text","text":"a"}, {"type":"output_text","text":"b"}, {"type":"output_text","text":"c"} ]}`
	p := responsesDecode(t, `{"model":"m","input":[`+responsesUserItem+`,`+item+`,`+responsesUserItem+`]}`)
	parts := p.Messages[1].Parts
	for want, kept := range map[string][]thread.Part{
		item: parts,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"}]}`:                                                        parts[:1],
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"c"}]}`:                      {parts[0], parts[2]},
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"},{"type":"output_text","text":"c"}]}`:                                   parts[1:],
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"},{"type":"output_text","text":"b"},{"type":"output_text","text":"c"}]}`: {thread.Text{Text: "x"}, parts[1], parts[2]},
	} {
		q := *p
		q.Messages = slices.Clone(p.Messages)
		q.Messages[1] = responsesRebuilt(p.Messages[1], kept...)
		got := responsesInputOf(responsesEncode(t, &q))[1]
		if strings.Contains(want, `"id"`) && want != item {
			// Nobody changed the item's id; a body without reasoning keeps it.
			if !strings.Contains(got, `"id":"msg_1"`) {
				t.Errorf("the id is gone: %s", got)
			}
		}
		if got != want {
			t.Errorf("want %s\n got %s", want, got)
		}
	}

	// The same for what a user said; content parts keep their bytes.
	p = responsesDecode(t, responsesZoo)
	user := p.Messages[0]
	p.Messages[0] = responsesRebuilt(user, thread.Text{Text: "see"}, user.Parts[1], user.Parts[6])
	want := `{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"low"},{"type":"input_smell","text":"roses"}]}`
	if got := responsesInputOf(responsesEncode(t, p))[2]; got != want {
		t.Errorf("want %s\n got %s", want, got)
	}
	p.Messages[0] = responsesRebuilt(user, user.Parts...)
	if got := responsesEncode(t, p); got != responsesZoo {
		t.Errorf("all parts as they were: %s", cmp.Diff(responsesZoo, got))
	}
}

// Only what differs in the prompt differs in the body.
func TestResponsesEditsOfTheBody(t *testing.T) {
	const body = " { \"store\" : false ,\n \"model\":\"m\", \"input\" : [ {\"role\":\"user\",\"content\":\"a\"} ,\n  {\"role\":\"user\",\"content\":\"b\"} ;]}\n"
	text := strings.Replace(body, ";", "", 1)
	tests := map[string]struct {
		edit func(*prompt.Prompt)
		want string
	}{
		"nothing": {func(*prompt.Prompt) {}, text},
		"model":   {func(p *prompt.Prompt) { p.Model = "n" }, strings.Replace(text, `"m"`, `"n"`, 1)},
		"output":  {func(p *prompt.Prompt) { p.MaxOutput = 7 }, strings.Replace(text, `]}`, `],"max_output_tokens":7}`, 1)},
		"system": {func(p *prompt.Prompt) {
			p.System = []prompt.System{{Role: "instructions", Text: "x"}, {Role: "developer", Text: "y"}}
		}, strings.NewReplacer(`[ {`, `[{"type":"message","role":"developer","content":"y"},{`, " ,\n  ", ",", `} ]}`, `}],"instructions":"x"}`).Replace(text)},
		"tools": {func(p *prompt.Prompt) { p.Tools = []prompt.Tool{{Name: "a.b", Schema: `{"type":"object"}`}} },
			strings.Replace(text, `]}`, `],"tools":[{"type":"function","name":"a_b_2e7336dc","parameters":{"type":"object"},"strict":false}]}`, 1)},
		"one more": {func(p *prompt.Prompt) {
			p.Messages = append(p.Messages, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "c"}}})
		}, strings.NewReplacer(`[ {`, `[{`, " ,\n  ", ",", `} ]`, `},{"type":"message","role":"user","content":[{"type":"input_text","text":"c"}]}]`).Replace(text)},
		"none": {func(p *prompt.Prompt) { p.Messages = nil }, " { \"store\" : false ,\n \"model\":\"m\", \"input\" : []}\n"},
	}
	for name, test := range tests {
		p := responsesDecode(t, text)
		test.edit(p)
		got := responsesEncode(t, p)
		if got != test.want {
			t.Errorf("%s:\nwant %s\n got %s", name, test.want, got)
		}
	}

	// What was there and is taken away becomes null.
	p := responsesDecode(t, responsesZoo)
	p.System, p.Tools, p.MaxOutput = nil, nil, 0
	got := responsesEncode(t, p)
	for _, part := range []string{`"instructions": null`, `"max_output_tokens": null`, `"tools": []`, `"future": {"a": [1, 2]}`} {
		if !strings.Contains(got, part) {
			t.Errorf("want %s in %s", part, got)
		}
	}
	if strings.Contains(got, "rules") || strings.Contains(got, `"two"`) {
		t.Error("system items were to go")
	}
}

func TestResponsesStringInputBecomesItems(t *testing.T) {
	p := responsesDecode(t, `{"model":"m","input":"hi \u00e9"}`)
	p.Messages = append(p.Messages, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "more"}}})
	want := `{"model":"m","input":[{"type":"message","role":"user","content":"hi \u00e9"},{"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}]}`
	if got := responsesEncode(t, p); got != want {
		t.Errorf("want %s\n got %s", want, got)
	}
	p = responsesDecode(t, `{}`)
	p.Messages = []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "a"}}}}
	p.Model = "m"
	want = `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}]}`
	if got := responsesEncode(t, p); got != want {
		t.Errorf("want %s\n got %s", want, got)
	}
}

// A prompt of another API becomes one that this API takes.
func TestResponsesTranslation(t *testing.T) {
	from := func(raw string) thread.Source { return thread.Source{API: "anthropic", Raw: raw} }
	p := &prompt.Prompt{
		Model: "m", MaxOutput: 100,
		System: []prompt.System{{Text: "s1", Role: "instructions"}, {Text: "s2", Role: "system"}, {Text: "s3", Role: "instructions"}},
		Tools: []prompt.Tool{
			{Name: "f", Description: "does", Schema: `{"type":"object"}`},
			{Name: "bash", Source: from(`{"type":"bash_20250124","name":"bash"}`)},
			{Name: "p", Description: "patch", Source: thread.Source{API: "openai", Raw: `{"type":"custom","custom":{"name":"p","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}}}`}},
		},
		Messages: []thread.Message{
			{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "hi"}, thread.Media{Type: thread.Document, Text: "plain"}, thread.Media{Type: thread.Video, Name: "v.mp4", URL: "gs://b/v"}, thread.Text{}}},
			{Role: thread.Assistant, Parts: []thread.Part{
				thread.Reasoning{Text: "x", Signature: "y", Source: from(`{}`)}, thread.Text{Text: "a"}, thread.Text{Text: "b"},
				thread.Opaque{Kind: "server_tool_use", Text: "q", Source: from(`{}`)},
				thread.ToolCall{ID: "toolu_1", Name: "ns:f", Arguments: `{"a":1}`},
				thread.ToolCall{ID: strings.Repeat("x", 65), Name: "f"},
			}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "toolu_1", Content: []thread.Part{thread.Text{Text: "r"}, thread.Media{Type: thread.Image, Data: "AA", MIME: "image/gif"}}}}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: strings.Repeat("x", 65)}}},
			{Role: thread.System, Parts: []thread.Part{thread.Text{Text: "note"}}},
		},
	}
	body := responsesEncode(t, p)
	items := responsesInputOf(body)
	long := gjson.Get(items[5], "call_id").Str
	want := []string{
		`{"type":"message","role":"system","content":"s2"}`,
		`{"type":"message","role":"developer","content":"s3"}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_text","text":"plain"},{"type":"input_text","text":"[video: v.mp4, gs://b/v]"}]}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}`,
		`{"type":"function_call","call_id":"toolu_1","name":"` + fittedName("ns:f") + `","arguments":"{\"a\":1}"}`,
		`{"type":"function_call","call_id":"` + long + `","name":"f","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"toolu_1","output":[{"type":"input_text","text":"r"},{"type":"input_image","image_url":"data:image/gif;base64,AA"}]}`,
		`{"type":"function_call_output","call_id":"` + long + `","output":""}`,
		`{"type":"message","role":"developer","content":[{"type":"input_text","text":"note"}]}`,
	}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(long) > 64 || !strings.HasPrefix(long, "call_") {
		t.Errorf("call id %q", long)
	}
	tools := `"tools":[{"type":"function","name":"f","description":"does","parameters":{"type":"object"},"strict":false},{"type":"custom","name":"p","description":"patch","format":{"type":"grammar","syntax":"lark","definition":"x"}}],"max_output_tokens":100,"store":false}`
	if !strings.HasPrefix(body, `{"model":"m","instructions":"s1","input":[`) || !strings.HasSuffix(body, tools) {
		t.Errorf("body %s", body)
	}
	responsesNoProblems(t, body)
}

// Each part of a message or a result becomes what OpenAI takes there, or words
// that say what is missing.
func TestResponsesContentOfOtherAPIs(t *testing.T) {
	chat := thread.Source{API: "openai", Raw: `{}`}
	for want, part := range map[string]thread.Part{
		`{"type":"input_text","text":"a<b"}`:                                                            thread.Text{Text: "a<b"},
		`{"type":"input_image","image_url":"data:image/png;base64,AA","detail":"high"}`:                 thread.Media{Type: thread.Image, Data: "AA", Detail: "high"},
		`{"type":"input_image","image_url":"https://x/y"}`:                                              thread.Media{Type: thread.Image, URL: "https://x/y", Detail: "ultra"},
		`{"type":"input_image","file_id":"file-1"}`:                                                     thread.Media{Type: thread.Image, FileID: "file-1", Source: chat},
		`{"type":"input_text","text":"[image: gs://bucket/a]"}`:                                         thread.Media{Type: thread.Image, URL: "gs://bucket/a"},
		`{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA"}`:         thread.Media{Type: thread.Document, MIME: "application/pdf", Name: "a.pdf", Data: "AA"},
		`{"type":"input_file","filename":"file","file_data":"data:application/octet-stream;base64,AA"}`: thread.Media{Type: thread.File, Data: "AA"},
		`{"type":"input_file","file_url":"https://x/a.pdf"}`:                                            thread.Media{Type: thread.Document, Name: "a.pdf", URL: "https://x/a.pdf"},
		`{"type":"input_file","file_id":"file-2"}`:                                                      thread.Media{Type: thread.File, FileID: "file-2", Source: chat},
		`{"type":"input_text","text":"[file: b.txt]"}`:                                                  thread.Media{Type: thread.File, Name: "b.txt", FileID: "file_2", Source: thread.Source{API: "anthropic", Raw: `{}`}},
		`{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}}`:                             thread.Media{Type: thread.Audio, MIME: "audio/wav", Data: "AA"},
		`{"type":"input_text","text":"[audio: audio/ogg, 3 bytes]"}`:                                    thread.Media{Type: thread.Audio, MIME: "audio/ogg", Data: "AAAA"},
		`{"type":"input_text","text":"[image: shot]"}`:                                                  thread.Media{Type: thread.Image, Name: "shot"},
		`{"type":"input_text","text":"kept \u00e9"}`:                                                    thread.Text{Text: "kept é", Source: thread.Source{API: "responses", Raw: `"kept \u00e9"`}},
		`{"type":"input_text","text":"of an item"}`:                                                     thread.Text{Text: "of an item", Source: thread.Source{API: "responses", Raw: `{"role":"user","content":"of an item"}`}},
		`{"type":"input_text","text":"said by the model"}`:                                              thread.Text{Text: "said by the model", Source: thread.Source{API: "responses", Raw: `{"type":"output_text","text":"said by the model"}`}},
		`{"type":"input_text","text":"an answer"}`:                                                      thread.Text{Text: "an answer", Source: thread.Source{API: "responses", Raw: `{"role":"assistant","content":"an answer"}`}},
		`{"type":"input_image","image_url":"data:image/png;base64,BB"}`:                                 thread.Media{Type: thread.Image, MIME: "image/png", Data: "BB", Source: thread.Source{API: "responses", Raw: `{"type":"computer_screenshot","image_url":"data:image/png;base64,BB"}`}},
	} {
		body := responsesEncode(t, &prompt.Prompt{Model: "m", Messages: []thread.Message{
			{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "see"}, part}},
		}})
		if got := gjson.Get(body, "input.0.content.1").Raw; got != want {
			t.Errorf("want %s\n got %s", want, got)
		}
		responsesNoProblems(t, body)
	}

	// The model cannot say media; words stand for them.
	body := responsesEncode(t, &prompt.Prompt{Model: "m", Messages: []thread.Message{
		{Role: thread.Assistant, Parts: []thread.Part{
			thread.Media{Type: thread.Image, Data: "AAAA"},
			thread.Text{Text: "asked", Source: thread.Source{API: "responses", Raw: `{"type":"input_text","text":"asked"}`}},
			thread.Text{Text: "kept", Source: thread.Source{API: "responses", Raw: `{"type":"output_text","text":"kept","annotations":[]}`}},
		}},
		{Role: thread.User, Parts: []thread.Part{thread.Text{}}},
	}})
	want := `[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"[image: 3 bytes]"},{"type":"output_text","text":"asked"},{"type":"output_text","text":"kept","annotations":[]}]},{"type":"message","role":"user","content":""}]`
	if got := gjson.Get(body, "input").Raw; got != want {
		t.Errorf("want %s\n got %s", want, got)
	}
}

// A result of a call that is not in the request keeps its id: the call is in
// the history that OpenAI keeps.
func TestResponsesResultsOfAKeptHistory(t *testing.T) {
	const long = "call_with_an_odd:id"
	p := responsesDecode(t, `{"model":"m","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"`+long+`","output":"x"}]}`)
	p.Messages[0] = responsesRebuilt(p.Messages[0], thread.ToolResult{CallID: long, Content: []thread.Part{thread.Text{Text: "y"}}})
	want := `{"model":"m","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"` + long + `","output":"y"}]}`
	if got := responsesEncode(t, p); got != want {
		t.Errorf("want %s\n got %s", want, got)
	}
}

// Ids that come back are made different, and results follow their own call.
func TestResponsesCallIDsAreUnique(t *testing.T) {
	step := []thread.Message{
		{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "again", Name: "f"}}},
		{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "again"}}},
	}
	p := &prompt.Prompt{Model: "m", Messages: append(slices.Clone(step), step...)}
	body := responsesEncode(t, p)
	items := responsesInputOf(body)
	var ids []string
	for _, item := range items {
		ids = append(ids, gjson.Get(item, "call_id").Str)
	}
	if len(ids) != 4 || ids[0] != "again" || ids[1] != "again" || ids[2] == "again" || ids[2] != ids[3] {
		t.Errorf("call ids %v", ids)
	}
	responsesNoProblems(t, body)
	// The longer conversation does not change the ids of the shorter one.
	p.Messages = p.Messages[:2]
	if got := responsesInputOf(responsesEncode(t, p)); !slices.Equal(got, items[:2]) {
		t.Errorf("the start changed: %v", got)
	}
}
