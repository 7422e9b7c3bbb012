package openai_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

func chatSeeds(f *testing.F) {
	for _, body := range chatSamples {
		f.Add(body)
	}
	for _, body := range []string{
		`{"messages":[{"role":"tool","content":{}},{"role":"assistant","tool_calls":[null,{"id":1}],"function_call":{}}],"tools":[1],"functions":[{"name":"x"}]}`,
		`{"messages" : [ ], "tools":[],"max_tokens":-1,"model":null}`,
		`{"messages":[{"role":"user","content":[[],"a",{"type":"text"},{"type":"file","file":{"file_data":"data:a;base64,"}}]}]}`,
	} {
		f.Add([]byte(body))
	}
}

// FuzzChatDecode: no input panics, and what decodes is written back as it was.
// Rewriting everything from its fields must give something that decodes.
func FuzzChatDecode(f *testing.F) {
	chatSeeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := openai.Chat{}.Decode(string(body))
		if err != nil {
			if !errors.Is(err, wire.ErrFormat) {
				t.Fatalf("%v does not wrap ErrFormat", err)
			}
			return
		}
		if out := chatEncode(t, p); out != string(body) {
			t.Fatalf("came back as\n%q, was\n%q", out, body)
		}
		for i := range p.Messages {
			p.Messages[i].Frame = nil
		}
		if out, err := (openai.Chat{}).Encode(p); err != nil {
			t.Fatal(err)
		} else if _, err := (openai.Chat{}).Decode(string(out)); err != nil {
			t.Fatalf("rebuilt as %q: %v", out, err)
		}
		p.Source = nil
		if out := chatEncode(t, p); !bytes.HasPrefix([]byte(out), []byte(`{"model":`)) {
			t.Fatalf("translated as %q", out)
		}
	})
}

// FuzzChatValidate: no input panics, and every problem says what it is.
func FuzzChatValidate(f *testing.F) {
	chatSeeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range (openai.Chat{}).Validate(body) {
			if p.Rule == "" || p.Message == "" {
				t.Fatalf("nameless problem %+v", p)
			}
		}
	})
}

// TestChatTranslatedIsValid: whatever another API allows in names, ids,
// arguments, media and roles, the translated body breaks no rule, and calls
// and results still find each other.
func TestChatTranslatedIsValid(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		from := thread.Source{API: rapid.SampledFrom([]string{wire.Anthropic, wire.Gemini, wire.Responses, ""}).Draw(rt, "api"), Raw: `{"name":"x"}`}
		p := drawForeign(rt, from)
		out, err := openai.Chat{}.Encode(p)
		if err != nil {
			rt.Fatal(err)
		}
		for _, problem := range (openai.Chat{}).Validate(out) {
			if !problem.Advice || problem.Rule == "arguments" {
				rt.Errorf("%v\n%s", problem, out)
			}
		}
	})
}

func drawForeign(rt *rapid.T, from thread.Source) *prompt.Prompt {
	odd := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z.:|/]{1,90}`))
	p := &prompt.Prompt{Model: "m"}
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-zA-Z0-9_.:-]{0,80}`), 1, 4, rapid.ID).Draw(rt, "tools")
	for _, name := range names {
		p.Tools = append(p.Tools, prompt.Tool{Name: name, Description: odd.Draw(rt, "about"), Schema: rapid.SampledFrom([]string{"", "null", `{"type":"object"}`, "{"}).Draw(rt, "schema"), Source: from})
	}
	part := func(label string) thread.Part {
		text := odd.Draw(rt, label)
		switch rapid.IntRange(0, 5).Draw(rt, "kind") {
		case 0:
			return thread.Reasoning{Text: text, Source: from}
		case 1:
			return thread.Opaque{Kind: "odd", Text: text, Source: from}
		case 2:
			return thread.Media{
				Type: rapid.SampledFrom([]thread.MediaType{thread.Image, thread.Document, thread.Audio, thread.Video, thread.File}).Draw(rt, "media"),
				MIME: rapid.SampledFrom([]string{"", "image/png", "application/pdf", "audio/wav", "text/plain"}).Draw(rt, "mime"),
				Data: rapid.SampledFrom([]string{"", "AA=="}).Draw(rt, "data"), FileID: rapid.SampledFrom([]string{"", "f1"}).Draw(rt, "file"),
				Text: rapid.SampledFrom([]string{"", "words"}).Draw(rt, "words"), Source: from,
			}
		}
		return thread.Text{Text: text, Source: from}
	}
	parts := func(label string) (list []thread.Part) {
		for range rapid.IntRange(0, 3).Draw(rt, label+" parts") {
			list = append(list, part(label))
		}
		return list
	}
	p.Messages = append(p.Messages, thread.Message{Role: thread.User, Name: odd.Draw(rt, "name"), Parts: parts("user")})
	for range rapid.IntRange(0, 5).Draw(rt, "steps") {
		m := thread.Message{Role: thread.Assistant, Name: odd.Draw(rt, "name"), Parts: parts("assistant")}
		var results []thread.Message
		for _, id := range rapid.SliceOfNDistinct(odd, 0, 3, rapid.ID).Draw(rt, "ids") {
			m.Parts = append(m.Parts, thread.ToolCall{
				ID: id, Name: rapid.SampledFrom(names).Draw(rt, "tool"), Arguments: rapid.OneOf(odd, rapid.Just(`{"a":[1]}`)).Draw(rt, "arguments"),
				Type: rapid.SampledFrom([]string{"", "custom", "local_shell"}).Draw(rt, "type"), Source: from,
			})
			results = append(results, thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Content: parts("tool"), Source: from}}})
		}
		p.Messages = append(append(p.Messages, m), results...)
		role := rapid.SampledFrom([]thread.Role{thread.User, thread.System}).Draw(rt, "role")
		p.Messages = append(p.Messages, thread.Message{Role: role, Parts: parts("next")})
	}
	return p
}

// chatLong is a body of about 100,000 tokens (characters / 4).
func chatLong() []byte {
	var b strings.Builder
	b.WriteString(`{"model":"m","stream":true,"messages":[{"role":"system","content":"You write code."},{"role":"user","content":"Fix it."}`)
	line := strings.Repeat(`func (s *store) get(id string) error {\n\treturn fmt.Errorf(\"no %q\", id)\n}\n`, 24)
	for i := 0; b.Len() < 400_000; i++ {
		fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"store/file%d.go\"}"}}]}`, i, i)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%d","content":"%s"}`, i, line)
	}
	b.WriteString(`],"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}]}`)
	return []byte(b.String())
}

func BenchmarkChatDecode(b *testing.B) {
	body := chatLong()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (openai.Chat{}).Decode(string(body)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChatEncodeUntouched(b *testing.B) {
	body := chatLong()
	p := chatDecode(b, string(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		chatEncode(b, p)
	}
}

func BenchmarkChatEncodeEdited(b *testing.B) {
	body := chatLong()
	p := chatDecode(b, string(body))
	for i := range p.Messages {
		p.Messages[i].Frame = nil
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		chatEncode(b, p)
	}
}

func BenchmarkChatTranslate(b *testing.B) {
	body := chatLong()
	p := chatDecode(b, string(body))
	p.Source = nil
	for i := range p.Messages {
		p.Messages[i].Frame = nil
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		chatEncode(b, p)
	}
}

func BenchmarkChatValidate(b *testing.B) {
	body := chatLong()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if problems := (openai.Chat{}).Validate(body); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}
