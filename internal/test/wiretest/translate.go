package wiretest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// foreign is the API that translated parts claim to come from.
var foreign = thread.Source{API: "elsewhere", Raw: `{"elsewhere":true}`}

// translate encodes random legal prompts of an API that no codec knows: the
// body must be valid, must read back, and must hold every word that was said,
// every call and every result.
func translate(t *testing.T, c wire.Codec) {
	property.Check(t, func(rt *rapid.T) {
		p := drawPrompt(rt)
		out, err := c.Encode(p)
		if err != nil {
			rt.Fatalf("Encode: %v", err)
		}
		for _, problem := range c.Validate(out) {
			if !problem.Advice {
				rt.Errorf("translated body breaks a rule: %v\n%s", problem, out)
			}
		}
		if strings.Contains(string(out), "elsewhere") {
			rt.Errorf("bytes of another API were sent on:\n%s", out)
		}
		back, err := c.Decode(string(out))
		if err != nil {
			rt.Fatalf("Decode: %v\n%s", err, out)
		}
		again, err := c.Encode(back)
		if err != nil || string(again) != string(out) {
			rt.Fatalf("the translated body does not round trip: %v\n%s\n%s", err, out, again)
		}
		want, got := contentOf(p), contentOf(back)
		for _, text := range want.texts {
			at := slices.IndexFunc(got.texts, func(s string) bool { return strings.Contains(s, text) })
			if at < 0 {
				rt.Fatalf("lost or out of order: %q\nin %q\n%s", text, got.texts, out)
			}
			// One text may hold several of the originals, one after the other.
			_, rest, _ := strings.Cut(got.texts[at], text)
			got.texts = append([]string{rest}, got.texts[at+1:]...)
		}
		if want.calls != got.calls || want.results != got.results {
			rt.Fatalf("%d calls and %d results became %d and %d\n%s", want.calls, want.results, got.calls, got.results, out)
		}
	})
}

type content struct {
	texts          []string
	calls, results int
}

func contentOf(p *prompt.Prompt) (c content) {
	for _, s := range p.System {
		c.texts = append(c.texts, s.Text)
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		c.calls += len(m.Calls())
		if r, ok := m.Result(); ok {
			c.results++
			c.add(r.Content)
		}
		c.add(m.Parts)
	}
	c.texts = slices.DeleteFunc(c.texts, func(s string) bool { return strings.TrimSpace(s) == "" })
	return c
}

func (c *content) add(parts []thread.Part) {
	for _, part := range parts {
		if text, ok := part.(thread.Text); ok {
			c.texts = append(c.texts, text.Text)
		}
	}
}

// drawPrompt makes a prompt as it looks after another codec read it: calls
// with all their results following, every kind of part, odd ids.
func drawPrompt(rt *rapid.T) *prompt.Prompt {
	d := &drawer{rt: rt}
	p := &prompt.Prompt{Model: "model-x", MaxOutput: rapid.SampledFrom([]int{0, 1, 4096}).Draw(rt, "max")}
	for range rapid.IntRange(0, 2).Draw(rt, "system") {
		role := rapid.SampledFrom([]string{"system", "developer", "instructions"}).Draw(rt, "as")
		p.System = append(p.System, prompt.System{Text: d.text(), Role: role, Source: foreign})
	}
	for i := range rapid.IntRange(1, 3).Draw(rt, "tools") {
		p.Tools = append(p.Tools, prompt.Tool{
			Name: fmt.Sprintf("tool_%d", i), Description: d.text(), Source: foreign,
			Schema: rapid.SampledFrom([]string{`{"type":"object"}`, `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`}).Draw(rt, "schema"),
		})
	}
	d.user(p)
	for range rapid.IntRange(0, 6).Draw(rt, "steps") {
		if rapid.Bool().Draw(rt, "calls") {
			d.step(p)
		} else {
			d.answer(p)
			d.user(p)
		}
	}
	return p
}

type drawer struct {
	rt *rapid.T
	n  int
}

// text draws a text that no other text of the prompt equals, or an empty one.
func (d *drawer) text() string {
	d.n++
	if rapid.IntRange(0, 9).Draw(d.rt, "empty") == 0 {
		return rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(d.rt, "blank")
	}
	return fmt.Sprintf("words %d %s.", d.n, rapid.SampledFrom([]string{"plain", "\"quoted\" <b>&", "日本語 🙂", "back\\slash", "line\nline"}).Draw(d.rt, "words"))
}

func (d *drawer) parts(kinds ...string) []thread.Part {
	var parts []thread.Part
	for range rapid.IntRange(1, 3).Draw(d.rt, "parts") {
		switch rapid.SampledFrom(kinds).Draw(d.rt, "kind") {
		case "text":
			parts = append(parts, thread.Text{Text: d.text(), Source: foreign})
		case "reasoning":
			parts = append(parts, thread.Reasoning{Text: "thoughts", Signature: "c2VhbA==", Source: foreign})
		case "opaque":
			parts = append(parts, thread.Opaque{Kind: "odd", Text: "odd text", Source: foreign})
		case "image":
			parts = append(parts, thread.Media{Type: thread.Image, MIME: "image/png", Data: "aGVsbG8=", Source: foreign})
		case "link":
			parts = append(parts, thread.Media{Type: thread.Image, MIME: "image/png", URL: "https://example.com/a.png", Source: foreign})
		case "document":
			parts = append(parts, thread.Media{Type: thread.Document, MIME: "application/pdf", Name: "a.pdf", Data: "aGVsbG8=", Source: foreign})
		case "upload":
			parts = append(parts, thread.Media{Type: thread.File, FileID: "file_1", Source: foreign})
		}
	}
	return parts
}

func (d *drawer) user(p *prompt.Prompt) {
	p.Messages = append(p.Messages, thread.Message{
		Role:  thread.User,
		Parts: d.parts("text", "text", "image", "link", "document", "upload", "opaque"),
	})
}

func (d *drawer) answer(p *prompt.Prompt) {
	p.Messages = append(p.Messages, thread.Message{
		Role:  thread.Assistant,
		Parts: d.parts("text", "text", "reasoning", "opaque"),
	})
}

// step is an assistant message with calls, and a result for each of them.
func (d *drawer) step(p *prompt.Prompt) {
	m := thread.Message{Role: thread.Assistant}
	if rapid.Bool().Draw(d.rt, "preamble") {
		m.Parts = d.parts("text", "reasoning")
	}
	var results []thread.Message
	for i := range rapid.IntRange(1, 3).Draw(d.rt, "batch") {
		id := fmt.Sprintf("call|%d:%d/%s", len(p.Messages), i, "é")
		if rapid.IntRange(0, 3).Draw(d.rt, "again") == 0 {
			id = fmt.Sprintf("again_%d", i)
		}
		call := thread.ToolCall{ID: id, Name: "tool_0", Arguments: `{"q":"a <b>","n":12345678901234567890}`, Source: foreign}
		if rapid.IntRange(0, 4).Draw(d.rt, "custom") == 0 {
			call.Type, call.Arguments = "custom", "free text, no \"JSON\""
		}
		m.Parts = append(m.Parts, call)
		results = append(results, thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
			CallID: id, Tool: call.Name,
			Outcome: rapid.SampledFrom([]thread.Outcome{thread.Success, thread.Failure, thread.Partial, ""}).Draw(d.rt, "outcome"),
			Content: d.parts("text", "text", "image", "opaque"),
			Source:  foreign,
		}}})
	}
	p.Messages = append(append(p.Messages, m), results...)
}
