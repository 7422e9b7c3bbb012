package anthropic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

func decode(t testing.TB, body string) *prompt.Prompt {
	t.Helper()
	p, err := anthropic.Codec{}.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func encode(t testing.TB, p *prompt.Prompt) string {
	t.Helper()
	out, err := anthropic.Codec{}.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func from(raw string) thread.Source { return thread.Source{API: wire.Anthropic, Raw: raw} }

// blockTests are blocks and the parts they become.
var blockTests = []struct {
	role, block string
	want        thread.Part
}{
	{"user", `{"type":"text","text":"a\u00e9 \u65e5"}`, thread.Text{Text: "aé 日"}},
	{"user", `{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}`, thread.Text{Text: "x", Source: thread.Source{Cache: "1h"}}},
	{"user", `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`, thread.Text{Text: "x", Source: thread.Source{Cache: "5m"}}},
	{"user", `{"type":"text","text":"x","cache_control":null}`, thread.Text{Text: "x"}},
	{"user", `{"type":"text","text":"first","text":"last"}`, thread.Text{Text: "last"}},
	{"user", `{"type":"text","text":7}`, thread.Opaque{Kind: "text"}},
	{"user", `{}`, thread.Opaque{}},
	{"user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`, thread.Media{Type: thread.Image, MIME: "image/png", Data: "QUJD"}},
	{"user", `{"type":"image","source":{"type":"url","url":"https://x/y"}}`, thread.Media{Type: thread.Image, URL: "https://x/y"}},
	{"user", `{"type":"document","title":"T","source":{"type":"file","file_id":"f"}}`, thread.Media{Type: thread.Document, Name: "T", FileID: "f"}},
	{"user", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}}`, thread.Media{Type: thread.Document, MIME: "text/plain", Text: "words"}},
	{"user", `{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`, thread.Media{Type: thread.Document, Text: "a\nb"}},
	{"user", `{"type":"image","source":{"type":"hologram","data":"x"}}`, thread.Opaque{Kind: "image"}},
	{"user", `{"type":"tool_use","id":"a","name":"t","input":{}}`, thread.Opaque{Kind: "tool_use", Text: "t {}"}},
	{"user", `{"type":"search_result","title":"T","source":"https://x","content":[{"type":"text","text":"found"}]}`, thread.Opaque{Kind: "search_result", Text: "T\nhttps://x\nfound"}},
	{"system", `{"type":"tool_addition","tool":{"type":"tool_reference","name":"lookup"}}`, thread.Opaque{Kind: "tool_addition", Text: "lookup"}},
	{"assistant", `{"type":"thinking","thinking":"hm","signature":"s"}`, thread.Reasoning{Text: "hm", Signature: "s"}},
	{"assistant", `{"type":"redacted_thinking","data":"d"}`, thread.Reasoning{Signature: "d"}},
	{"assistant", `{"type":"tool_use","id":"a","name":"t","input":{ "k": 1 }}`, thread.ToolCall{ID: "a", Name: "t", Arguments: `{ "k": 1 }`}},
	{"assistant", `{"type":"tool_use","name":"t","input":{}}`, thread.Opaque{Kind: "tool_use", Text: "t {}"}},
	{"assistant", `{"type":"tool_result","tool_use_id":"a","content":"x"}`, thread.Opaque{Kind: "tool_result", Text: "x"}},
	{"assistant", `{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"go"}}`, thread.Opaque{Kind: "server_tool_use", Text: `web_search {"query":"go"}`, Call: "s", Tool: "web_search"}},
	{"assistant", `{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"Go","url":"https://go.dev","encrypted_content":"zzz"}]}`, thread.Opaque{Call: "s", Answers: true, Kind: "web_search_tool_result", Text: "Go\nhttps://go.dev"}},
	{"assistant", `{"type":"bash_code_execution_tool_result","tool_use_id":"s","content":{"type":"bash_code_execution_result","stdout":"out","stderr":"","return_code":0}}`, thread.Opaque{Call: "s", Answers: true, Kind: "bash_code_execution_tool_result", Text: "out"}},
	{"assistant", `{"type":"compaction","content":"so far","signature":"s"}`, thread.Opaque{Kind: "compaction", Text: "so far"}},
	{"assistant", `{"type":"new_in_2031","text":"read me","blob":"not me"}`, thread.Opaque{Kind: "new_in_2031", Text: "read me"}},
}

// A6, A7: every block is understood or kept.
func TestBlocks(t *testing.T) {
	for _, test := range blockTests {
		p := decode(t, chat("", message(test.role, test.block)))
		if len(p.Messages) != 1 || len(p.Messages[0].Parts) != 1 {
			t.Errorf("%s: got %+v", test.block, p.Messages)
			continue
		}
		m := p.Messages[0]
		if string(m.Role) != test.role {
			t.Errorf("%s: role %s", test.block, m.Role)
		}
		if diff := cmp.Diff(with(test.want, test.block), m.Parts[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.block, diff)
		}
	}
}

// with fills in the source that every decoded part has.
func with(p thread.Part, raw string) thread.Part {
	src := thread.Source{API: wire.Anthropic, Raw: raw, Cache: p.From().Cache}
	switch p := p.(type) {
	case thread.Text:
		p.Source = src
		return p
	case thread.Media:
		p.Source = src
		return p
	case thread.Reasoning:
		p.Source = src
		return p
	case thread.ToolCall:
		p.Source = src
		return p
	case thread.Opaque:
		p.Source = src
		return p
	}
	return p
}

func TestUserMessageIsCut(t *testing.T) {
	const failed = `{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"no"},{"type":"tool_reference","tool_name":"u"}]}`
	element := user(giveA, failed, text, text)
	p := decode(t, chat(tool, hi, assistant(callA, callB), element))
	got := p.Messages[2:]
	frame := thread.NewFrame(wire.Anthropic, element, 2, 1, 3)
	want := []thread.Message{
		{Role: thread.Tool, Frame: frame, Index: 0, Parts: []thread.Part{thread.ToolResult{
			CallID: "a", Tool: "t", Outcome: thread.Success, Source: from(giveA),
			Content: []thread.Part{thread.Text{Text: "1", Source: from(`"1"`)}},
		}}},
		{Role: thread.Tool, Frame: frame, Index: 1, Parts: []thread.Part{thread.ToolResult{
			CallID: "b", Tool: "t", Outcome: thread.Failure, Source: from(failed),
			Content: []thread.Part{
				thread.Text{Text: "no", Source: from(`{"type":"text","text":"no"}`)},
				thread.Opaque{Kind: "tool_reference", Text: "u", Instruction: true, Source: from(`{"type":"tool_reference","tool_name":"u"}`)},
			},
		}}},
		{Role: thread.User, Frame: frame, Index: 2, Parts: []thread.Part{
			thread.Text{Text: "x", Source: from(text)}, thread.Text{Text: "x", Source: from(text)},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range got {
		if got[i].Frame != got[0].Frame {
			t.Error("messages cut from one element share no frame")
		}
	}
}

func TestTop(t *testing.T) {
	const body = `{"system":"Be brief.","max_tokens":7,"model":"m","tools":[{"name":"t","description":"d","input_schema":{"type": "object"},"cache_control":{"type":"ephemeral"}},{"type":"web_search_20250305","name":"web_search"}],"messages":[]}`
	p := decode(t, body)
	want := &prompt.Prompt{
		Model: "m", MaxOutput: 7, Messages: []thread.Message{},
		System: []prompt.System{{Text: "Be brief.", Role: "system", Source: from(`"Be brief."`)}},
		Tools: []prompt.Tool{
			{Name: "t", Description: "d", Schema: `{"type": "object"}`, Source: thread.Source{API: wire.Anthropic, Cache: "5m",
				Raw: `{"name":"t","description":"d","input_schema":{"type": "object"},"cache_control":{"type":"ephemeral"}}`}},
			{Name: "web_search", Source: from(`{"type":"web_search_20250305","name":"web_search"}`)},
		},
		Source: &prompt.Source{API: wire.Anthropic, Body: body, System: 1, Tools: 2},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeErrorsNameThePath(t *testing.T) {
	for body, path := range map[string]string{
		`{"model":"m"}`: "messages", `{"messages":{}}`: "messages",
		`{"messages":[],"messages":[]}`:                               "messages",
		`{"messages":[],"system":1}`:                                  "system",
		`{"messages":[],"system":[1]}`:                                "system[0]",
		`{"messages":[],"tools":{}}`:                                  "tools",
		`{"messages":[],"tools":[1]}`:                                 "tools[0]",
		`{"messages":[1]}`:                                            "messages[0]",
		`{"messages":[{"role":"user","content":"x"},{"role":"bot"}]}`: "messages[1].role",
		`{"messages":[{"role":"user"}]}`:                              "messages[0].content",
		`{"messages":[{"role":"user","content":[{},null]}]}`:          "messages[0].content[1]",
	} {
		_, err := anthropic.Codec{}.Decode(body)
		if !errors.Is(err, wire.ErrFormat) || !strings.Contains(err.Error(), path+": ") {
			t.Errorf("%s: want ErrFormat at %s, got %v", body, path, err)
		}
	}
}

func TestDecodeMessage(t *testing.T) {
	raw := user(giveA, text)
	messages, err := anthropic.DecodeMessage(" " + raw + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 2 || !messages[0].Frame.Equal(thread.NewFrame(wire.Anthropic, raw, 0, 1, 2)) {
		t.Errorf("got %+v", messages)
	}
	for _, bad := range []string{"", "{", "[]", `{"role":"user"}`, `{"role":"user","content":[1]}`, strings.Repeat("[", 100_000)} {
		if _, err := anthropic.DecodeMessage(bad); !errors.Is(err, wire.ErrFormat) {
			t.Errorf("%.20q: want ErrFormat, got %v", bad, err)
		}
	}
}

// Bytes that are no UTF-8 stay as they are where nobody touched them.
func TestInvalidUTF8IsKept(t *testing.T) {
	body := chat("", user("{\"type\":\"text\",\"text\":\"a\xff\xfe\"}"), ok, hi)
	p := decode(t, body)
	if got := encode(t, p); got != body {
		t.Errorf("got %q", got)
	}
	p.Messages[2] = thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "b\xff"}}}
	if got := encode(t, p); !strings.Contains(got, "a\xff\xfe") || !strings.Contains(got, "b\uFFFD") {
		t.Errorf("got %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	for _, test := range blockTests {
		f.Add([]byte(chat("", message(test.role, test.block))))
	}
	f.Add([]byte(" " + chat(`"system":"s",`+tool, hi, assistant(callA, callB), user(giveA, text, giveB)) + "\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := anthropic.Codec{}.Decode(string(body))
		if err != nil {
			if !errors.Is(err, wire.ErrFormat) {
				t.Errorf("%v does not wrap ErrFormat", err)
			}
			return
		}
		if got := encode(t, p); got != string(body) {
			t.Errorf("got  %q\nwant %q", got, body)
		}
		// Every other way through the encoder must end as well.
		p.CachePoints = []prompt.CachePoint{{After: -1}, {After: 0, TTL: "1h"}, {After: len(p.Messages) - 1}}
		decode(t, encode(t, p))
		for i := range p.Messages {
			p.Messages[i].Frame = nil
		}
		decode(t, encode(t, p))
		p.Source = nil
		decode(t, encode(t, p))
	})
}

// TestDeepBlock: of a block that nests on and on only the outer levels are read for
// text; all of it is kept.
func TestDeepBlock(t *testing.T) {
	deep := `{"type":"odd","title":"outside","content":` + strings.Repeat(`[{"content":`, 400) + `"inside"` + strings.Repeat(`}]`, 400) + `}`
	list, err := anthropic.DecodeMessage(`{"role":"user","content":[` + deep + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	part, ok := list[0].Parts[0].(thread.Opaque)
	if !ok || part.Text != "outside" || part.Raw != deep {
		t.Errorf("%T %q, %d of %d bytes", list[0].Parts[0], part.Text, len(part.Raw), len(deep))
	}
}
