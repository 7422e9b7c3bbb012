package openai_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

func chatDecode(t testing.TB, body string) *prompt.Prompt {
	t.Helper()
	p, err := openai.Chat{}.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func chatFrom(raw string) thread.Source { return thread.Source{API: wire.Chat, Raw: raw} }

// TestChatDecodeMessage reads one element, after a user message and a call of
// "ls" without id, and looks at its parts.
func TestChatDecodeMessage(t *testing.T) {
	for _, tt := range []struct {
		name, element string
		want          thread.Message
	}{
		{
			"string", `{"role":"user","name":"ann","content":"a\u00e9"}`,
			thread.Message{Role: thread.User, Name: "ann", Parts: []thread.Part{thread.Text{Text: "aé", Source: chatFrom("")}}},
		},
		{"null", `{"role":"assistant","content":null}`, thread.Message{Role: thread.Assistant}},
		{"empty string", `{"role":"user","content":""}`, thread.Message{Role: thread.User}},
		{
			"later system", `{"role":"developer","content":"now"}`,
			thread.Message{Role: thread.System, Parts: []thread.Part{thread.Text{Text: "now", Source: chatFrom("")}}},
		},
		{
			"cache mark", `{"role":"user","content":[{"type":"text","text":"t","cache_control":{"type":"ephemeral"}}]}`,
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "t", Source: thread.Source{
				API: wire.Chat, Raw: `{"type":"text","text":"t","cache_control":{"type":"ephemeral"}}`, Cache: "5m",
			}}}},
		},
		{
			"image", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}]}`,
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Media{
				Type: thread.Image, MIME: "image/png", Data: "AA==", Detail: "low",
				Source: chatFrom(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}`),
			}}},
		},
		{
			"image by link", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https:\/\/x.test\/a"}}]}`,
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Media{
				Type: thread.Image, URL: "https://x.test/a",
				Source: chatFrom(`{"type":"image_url","image_url":{"url":"https:\/\/x.test\/a"}}`),
			}}},
		},
		{
			"audio", `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}]}`,
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Media{
				Type: thread.Audio, MIME: "audio/mpeg", Data: "AA==",
				Source: chatFrom(`{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}`),
			}}},
		},
		{
			"file", `{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}}]}`,
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Media{
				Type: thread.Document, MIME: "application/pdf", Name: "a.pdf", Data: "AA==",
				Source: chatFrom(`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}}`),
			}}},
		},
		{
			"unknown parts", `{"role":"user","content":[{"type":"odd","x":1},{"type":"image_url"},7]}`,
			thread.Message{Role: thread.User, Parts: []thread.Part{
				thread.Opaque{Kind: "odd", Source: chatFrom(`{"type":"odd","x":1}`)},
				thread.Opaque{Kind: "image_url", Source: chatFrom(`{"type":"image_url"}`)},
				thread.Opaque{Source: chatFrom(`7`)},
			}},
		},
		{
			"fields beside content", `{"role":"assistant","reasoning_content":"think","content":"say","refusal":"no","audio":{"id":"a1"}}`,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{
				thread.Reasoning{Text: "think", Source: chatFrom(`{"reasoning_content":"think"}`)},
				thread.Text{Text: "say", Source: chatFrom("")},
				thread.Opaque{Kind: "refusal", Text: "no", Source: chatFrom(`{"refusal":"no"}`)},
				thread.Opaque{Kind: "audio", Source: chatFrom(`{"audio":{"id":"a1"}}`)},
			}},
		},
		{
			"reasoning details", `{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"s"},{"type":"reasoning.encrypted","data":"d"}]}`,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{
				thread.Reasoning{Text: "a", Signature: "sd", Source: chatFrom(`{"reasoning_details":[{"type":"reasoning.text","text":"a","signature":"s"},{"type":"reasoning.encrypted","data":"d"}]}`)},
				thread.Text{Text: "x", Source: chatFrom("")},
			}},
		},
		{
			"refusal part", `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{
				thread.Opaque{Kind: "refusal", Text: "no", Source: chatFrom(`{"type":"refusal","refusal":"no"}`)},
			}},
		},
		{
			"calls", `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{ }"},"extra_content":{"google":{"thought_signature":"sig"}}},{"id":"d","type":"custom","custom":{"name":"g","input":"free"}},{"id":"e","type":"odd","odd":{"x":1}}]}`,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{
				thread.ToolCall{ID: "c", Name: "f", Arguments: "{ }", Signature: "sig", Source: chatFrom(`{"id":"c","type":"function","function":{"name":"f","arguments":"{ }"},"extra_content":{"google":{"thought_signature":"sig"}}}`)},
				thread.ToolCall{ID: "d", Name: "g", Arguments: "free", Type: "custom", Source: chatFrom(`{"id":"d","type":"custom","custom":{"name":"g","input":"free"}}`)},
				thread.ToolCall{ID: "e", Arguments: `{"x":1}`, Type: "odd", Source: chatFrom(`{"id":"e","type":"odd","odd":{"x":1}}`)},
			}},
		},
		{
			"legacy call", `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{
				thread.ToolCall{ID: thread.LocalID(1), Name: "f", Arguments: "{}", Type: "function_call", Source: chatFrom(`{"name":"f","arguments":"{}"}`)},
			}},
		},
		{
			"result without id", `{"role":"tool","content":"a.txt"}`,
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
				CallID: thread.LocalID(0), Tool: "ls", Outcome: thread.Success,
				Content: []thread.Part{thread.Text{Text: "a.txt", Source: chatFrom("")}}, Source: chatFrom(""),
			}}},
		},
		{
			"orphan", `{"role":"tool","tool_call_id":"gone","name":"cat","content":""}`,
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
				CallID: "gone", Tool: "cat", Outcome: thread.Success, Source: chatFrom(""),
			}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := chatDecode(t, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"ls","arguments":"{}"}}]}, `+tt.element+` ]}`)
			got := p.Messages[2]
			tt.want.Frame = thread.NewFrame(wire.Chat, tt.element, 2, 1, 1)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestChatDecodePrompt(t *testing.T) {
	p := chatDecode(t, string(chatSamples["parts"]))
	if p.Model != "gpt-4o" || p.MaxOutput != 100 || len(p.Tools) != 0 {
		t.Errorf("model %q, max %d, %d tools", p.Model, p.MaxOutput, len(p.Tools))
	}
	var system []string
	for _, s := range p.System {
		system = append(system, s.Role+": "+s.Text+" "+s.Cache)
	}
	if diff := cmp.Diff([]string{"system: Be brief. ", "developer: Use tools. 1h"}, system); diff != "" {
		t.Errorf("system -want +got:\n%s", diff)
	}
	if s := p.Source; s.System != 2 || s.Elements != 7 || s.Tools != 0 {
		t.Errorf("source counts: %+v", *s)
	}
	for i := range p.Messages {
		if at := p.Messages[i].Frame.Position(); at != i {
			t.Errorf("message %d stands at position %d", i, at)
		}
	}

	p = chatDecode(t, string(chatSamples["calls"]))
	type tool struct{ Name, Description, Schema string }
	var tools []tool
	for _, d := range p.Tools {
		tools = append(tools, tool{d.Name, d.Description, d.Schema})
	}
	want := []tool{{"ls", "list", `{"type":"object","properties":{"path":{"type":"string"}}}`}, {"patch", "", ""}}
	if diff := cmp.Diff(want, tools); diff != "" {
		t.Errorf("tools -want +got:\n%s", diff)
	}
	if p.MaxOutput != 512 {
		t.Errorf("max %d", p.MaxOutput)
	}
}

// TestChatDecodeLegacy: results without ids find their calls, and ids stay the
// same while the conversation grows.
func TestChatDecodeLegacy(t *testing.T) {
	p := chatDecode(t, string(chatSamples["legacy"]))
	var got []string
	for i := range p.Messages {
		for _, c := range p.Messages[i].Calls() {
			got = append(got, "call "+c.ID)
		}
		if r, ok := p.Messages[i].Result(); ok {
			got = append(got, "result "+r.CallID+" "+r.Tool)
		}
	}
	want := []string{"call local_0", "result local_0 weather", "call local_1", "result local_1 weather"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(p.Tools) != 1 || p.Tools[0].Name != "weather" || p.Tools[0].Schema != `{"type":"object"}` {
		t.Errorf("functions: %+v", p.Tools)
	}
}

func TestDecodeChatMessages(t *testing.T) {
	p := chatDecode(t, string(chatSamples["calls"]))
	body := string(chatSamples["calls"])
	from := strings.Index(body, `[{"role":"user"`)
	to := strings.Index(body, `,"model"`)
	messages, system, err := openai.DecodeChatMessages(body[from:to])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Messages, messages); diff != "" || len(system) != 0 {
		t.Errorf("%d system blocks; messages -body +array:\n%s", len(system), diff)
	}
	for _, bad := range []string{"", "{}", "[", `[{"role":"nobody"}]`, "[1]"} {
		if _, _, err := openai.DecodeChatMessages(bad); !errors.Is(err, wire.ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestChatDecodeErrors(t *testing.T) {
	for body, path := range map[string]string{
		`{"model":"m"}`:   "messages:",
		`{"messages":{}}`: "messages:",
		`{"messages":[{"role":"user","content":"a"},"b"]}`:             "messages[1]:",
		`{"messages":[{"content":"a"}]}`:                               "messages[0].role:",
		`{"messages":[{"role":"model","content":"a"}]}`:                "messages[0].role:",
		`{"messages":[],"messages":[]}`:                                "messages:",
		`[]`:                                                           "body:",
		`{"messages":[]`:                                               "body:",
		strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000):      "body: the JSON nests too deep",
		`{"messages":` + strings.Repeat(`[{"a":`, 5_000_000) + `"x"]}`: "body: the JSON nests too deep",
	} {
		_, err := openai.Chat{}.Decode(body)
		if !errors.Is(err, wire.ErrFormat) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.60s: want ErrFormat naming %q, got %v", body, path, err)
		}
	}
}
