package openai_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

func chatEncode(t testing.TB, p *prompt.Prompt) string {
	t.Helper()
	out, err := openai.Chat{}.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// edit replaces a message the way the renderer does: new parts, no frame.
func edit(p *prompt.Prompt, i int, parts ...thread.Part) {
	m := p.Messages[i]
	p.Messages[i] = thread.Message{Role: m.Role, Name: m.Name, Parts: parts}
}

func resultOf(p *prompt.Prompt, i int, text string) thread.ToolResult {
	r, _ := p.Messages[i].Result()
	r.Content, r.Source = []thread.Part{thread.Text{Text: text}}, thread.Source{}
	return r
}

// TestChatEncodeEdits changes one thing of a body; everything else must keep
// its bytes.
func TestChatEncodeEdits(t *testing.T) {
	const head = `{ "top_p":1, "model" : "m" , "max_tokens":7,
 "messages" : [{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","reasoning_content":"r","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"c","content":"t"}]`
	const body = head + `, "tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}] , "tool_choice":"auto","n":1 } `
	for _, tt := range []struct {
		name     string
		change   func(p *prompt.Prompt)
		old, new string
	}{
		{"nothing", func(*prompt.Prompt) {}, "", ""},
		{"model", func(p *prompt.Prompt) { p.Model = "other" }, `"m"`, `"other"`},
		{"limit", func(p *prompt.Prompt) { p.MaxOutput = 8 }, `"max_tokens":7`, `"max_tokens":8`},
		{"no limit", func(p *prompt.Prompt) { p.MaxOutput = 0 }, ` , "max_tokens":7`, ``},
		{
			"system", func(p *prompt.Prompt) { p.System[0] = prompt.System{Text: "new", Role: "developer"} },
			`{"role":"system","content":"s"}`, `{"role":"developer","content":"new"}`,
		},
		{
			"no system", func(p *prompt.Prompt) { p.System = nil },
			`{"role":"system","content":"s"},`, ``,
		},
		{
			"user", func(p *prompt.Prompt) { edit(p, 0, thread.Text{Text: "one"}, thread.Text{Text: "two"}) },
			`{"role":"user","content":"u"},`, `{"role":"user","content":"one\ntwo"},`,
		},
		{
			"new message", func(p *prompt.Prompt) {
				p.Messages = slices.Insert(p.Messages, 1, thread.Message{Role: thread.System, Parts: []thread.Part{thread.Text{Text: "note"}}})
			},
			`{"role":"user","content":"u"},`, `{"role":"user","content":"u"},{"role":"system","content":"note"},`,
		},
		{
			"text of an assistant message", func(p *prompt.Prompt) {
				parts := slices.Clone(p.Messages[1].Parts)
				parts[1] = thread.Text{Text: "b"}
				edit(p, 1, parts...)
			},
			`"content":"a"`, `"content":"b"`,
		},
		{
			"arguments", func(p *prompt.Prompt) {
				parts := slices.Clone(p.Messages[1].Parts)
				c := parts[2].(thread.ToolCall)
				c.Arguments, c.Source = `{}`, thread.Source{}
				parts[2] = c
				edit(p, 1, parts...)
			},
			`{\"x\":1}`, `{}`,
		},
		{
			"result", func(p *prompt.Prompt) { edit(p, 2, resultOf(p, 2, `"cleared" <&> 日本`+"\n\x01\xff")) },
			`"content":"t"`, `"content":"\"cleared\" <&> 日本\n\u0001` + "\uFFFD" + `"`,
		},
		{"a tool less", func(p *prompt.Prompt) { p.Tools = p.Tools[:1] }, `,{"type":"function","function":{"name":"g"}}`, ``},
		{
			"no tools", func(p *prompt.Prompt) { p.Tools = nil },
			`, "tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}] , "tool_choice":"auto"`, ``,
		},
		{
			"another tool", func(p *prompt.Prompt) {
				p.Tools = append(p.Tools, prompt.Tool{Name: "h", Description: "d", Schema: `{"type":"object"}`})
			},
			`{"name":"g"}}`, `{"name":"g"}},{"type":"function","function":{"name":"h","description":"d","parameters":{"type":"object"}}}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := chatDecode(t, body)
			tt.change(p)
			want := strings.Replace(body, tt.old, tt.new, 1)
			if tt.old != "" && want == body {
				t.Fatal("the test expects no change")
			}
			if diff := cmp.Diff(want, chatEncode(t, p)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestChatEncodeAdds: fields that the body did not have go to its end.
func TestChatEncodeAdds(t *testing.T) {
	p := chatDecode(t, `{"messages":[ ]}`)
	p.Model, p.MaxOutput = "m", 5
	p.Tools = []prompt.Tool{{Name: "f"}}
	p.Messages = []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "hi"}}}}
	want := `{"messages":[{"role":"user","content":"hi"}],"model":"m",` +
		`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"max_completion_tokens":5}`
	if diff := cmp.Diff(want, chatEncode(t, p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestChatEncodeDropsFirstMembers: with the leading fields gone the object is
// still one.
func TestChatEncodeDropsFirstMembers(t *testing.T) {
	p := chatDecode(t, `{ "tools":[{"type":"function","function":{"name":"f"}}], "tool_choice":"none", "max_tokens":3, "messages":[], "model":"m" }`)
	p.Tools, p.MaxOutput = nil, 0
	if got, want := chatEncode(t, p), `{"messages":[], "model":"m" }`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestChatEncodeLegacy: edited legacy calls and results stay legacy, so that
// they match the half that was not edited.
func TestChatEncodeLegacy(t *testing.T) {
	body := string(chatSamples["legacy"])
	p := chatDecode(t, body)
	call := p.Messages[1].Calls()[0]
	call.Arguments, call.Source = `{"city":"…"}`, thread.Source{}
	edit(p, 1, call)
	edit(p, 6, resultOf(p, 6, "[weather: success]"))
	p.Tools = append(p.Tools, prompt.Tool{Name: "read_artifact", Schema: `{"type":"object"}`})
	want := strings.NewReplacer(
		`{\"city\":\"Rome\"}`, `{\"city\":\"…\"}`,
		`"name":"weather","content":"rain"`, `"name":"weather","content":"[weather: success]"`,
		`"parameters":{"type":"object"}}]`, `"parameters":{"type":"object"}},{"name":"read_artifact","parameters":{"type":"object"}}]`,
	).Replace(body)
	out := chatEncode(t, p)
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if problems := (openai.Chat{}).Validate([]byte(out)); len(problems) > 0 {
		t.Error(problems)
	}
}

// TestChatEncodeWithoutIDs: where a server gave calls no ids, none appears on
// one side of a pair only.
func TestChatEncodeWithoutIDs(t *testing.T) {
	const body = `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"t"}]}`
	p := chatDecode(t, body)
	edit(p, 1, resultOf(p, 1, "u"))
	if got, want := chatEncode(t, p), strings.Replace(body, `"t"`, `"u"`, 1); got != want {
		t.Errorf("result edited:\n got %s\nwant %s", got, want)
	}
	p = chatDecode(t, body)
	call := p.Messages[0].Calls()[0]
	call.Arguments, call.Source = `{"y":2}`, thread.Source{}
	edit(p, 0, call)
	if got, want := chatEncode(t, p), strings.Replace(body, `{}`, `{\"y\":2}`, 1); got != want {
		t.Errorf("call edited:\n got %s\nwant %s", got, want)
	}
}

// TestChatEncodeKeepsOddIDs: an id that OpenAI would refuse, but that stands in
// an untouched half of a pair, is not renamed in the edited half.
func TestChatEncodeKeepsOddIDs(t *testing.T) {
	id := "functions.ls:" + strings.Repeat("0", 40)
	body := `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"fs.ls","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"t"}]}`
	p := chatDecode(t, body)
	edit(p, 1, resultOf(p, 1, "u"))
	if got, want := chatEncode(t, p), strings.Replace(body, `"t"`, `"u"`, 1); got != want {
		t.Errorf("result edited:\n got %s\nwant %s", got, want)
	}
}

func TestChatEncodeTranslation(t *testing.T) {
	elsewhere := thread.Source{API: "elsewhere", Raw: `{"type":"elsewhere"}`}
	p := &prompt.Prompt{
		Model: "m", MaxOutput: 9,
		System: []prompt.System{{Text: "a", Role: "instructions", Source: elsewhere}, {Text: "b", Role: "developer"}, {}},
		Tools: []prompt.Tool{
			{Name: "fs.read", Schema: `{"type":"object"}`, Source: thread.Source{API: "elsewhere", Raw: `{"name":"fs.read"}`}},
			{Name: "patch", Source: thread.Source{API: wire.Responses, Raw: `{"type":"custom","name":"patch"}`}},
			{Name: "web_search", Source: thread.Source{API: wire.Responses, Raw: `{"type":"web_search"}`}},
		},
		Messages: []thread.Message{
			{Role: thread.User, Parts: []thread.Part{
				thread.Text{Text: "look", Source: elsewhere},
				thread.Media{Type: thread.Image, MIME: "image/png", Data: "aGVsbG8=", Detail: "high", Source: elsewhere},
				thread.Media{Type: thread.Document, MIME: "text/plain", Text: "words", Source: elsewhere},
				thread.Media{Type: thread.Video, MIME: "video/mp4", Data: "aGVsbG8=", Source: elsewhere},
			}},
			{Role: thread.Assistant, Parts: []thread.Part{
				thread.Reasoning{Text: "hm", Signature: "s", Source: elsewhere},
				thread.Opaque{Kind: "server_tool_use", Source: elsewhere},
				thread.ToolCall{ID: "call|1", Name: "fs.read", Arguments: `{"p":1}`, Source: elsewhere},
				thread.ToolCall{ID: thread.LocalID(0), Name: "patch", Arguments: "free", Type: "custom", Source: elsewhere},
				thread.ToolCall{ID: "c3", Name: "sh", Arguments: "not json", Type: "function_call", Source: elsewhere},
			}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "call|1", Outcome: thread.Failure, Content: []thread.Part{
				thread.Text{Text: "boom"}, thread.Media{Type: thread.Image, MIME: "image/png", Data: "aGVsbG8="},
			}}}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: thread.LocalID(0), Structured: `{"ok":true}`}}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "c3"}}},
			{Role: thread.Assistant, Parts: []thread.Part{thread.Reasoning{Text: "only", Source: elsewhere}}},
			{Role: thread.System, Parts: []thread.Part{thread.Text{Text: "note"}}},
			{Role: thread.User, Parts: []thread.Part{thread.Opaque{Kind: "odd", Text: "odd", Source: elsewhere}}},
		},
	}
	out := chatEncode(t, p)
	id, name := between(t, out, `"tool_calls":[{"id":"`, `"`), between(t, out, `"tools":[{"type":"function","function":{"name":"`, `"`)
	want := `{"model":"m","messages":[` +
		`{"role":"system","content":"a"},{"role":"developer","content":"b"},` +
		`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8=","detail":"high"}},` +
		`{"type":"text","text":"words"},{"type":"text","text":"[video: video/mp4, 5 bytes]"}]},` +
		`{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":"{\"p\":1}"}},` +
		`{"id":"local_0","type":"custom","custom":{"name":"patch","input":"free"}},` +
		`{"id":"c3","type":"function","function":{"name":"sh","arguments":"{\"input\":\"not json\"}"}}]},` +
		`{"role":"tool","tool_call_id":"` + id + `","content":"boom\n[image: image/png, 5 bytes]"},` +
		`{"role":"tool","tool_call_id":"local_0","content":"{\"ok\":true}"},` +
		`{"role":"tool","tool_call_id":"c3","content":""},` +
		`{"role":"system","content":"note"},{"role":"user","content":""}],` +
		`"tools":[{"type":"function","function":{"name":"` + name + `","parameters":{"type":"object"}}},` +
		`{"type":"custom","custom":{"name":"patch"}}],"max_completion_tokens":9}`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.HasPrefix(id, "call_") || !strings.HasPrefix(name, "fs_read_") {
		t.Errorf("id %q, name %q", id, name)
	}
	if problems := (openai.Chat{}).Validate([]byte(out)); len(problems) > 0 {
		t.Error(problems)
	}
}

func between(t *testing.T, s, before, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(s, before)
	if !ok {
		t.Fatalf("no %s in %s", before, s)
	}
	found, _, _ := strings.Cut(rest, after)
	return found
}

func TestChatEncodeRefusesBrokenSource(t *testing.T) {
	for _, body := range []string{"", "[", `{"messages":1}`} {
		if out, err := (openai.Chat{}).Encode(&prompt.Prompt{Source: &prompt.Source{API: wire.Chat, Body: body}}); err == nil {
			t.Errorf("%q became %s", body, out)
		}
	}
}
