package model

import (
	_ "embed" // the prompt
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

//go:embed prompts/shared.txt
var sharedTemplate string

// answerWith begins the rules that both forms of the request share.
const answerWith = "\n\nAnswer with one JSON object"

// beginning is how many bytes of a message the list of the span's messages shows: enough to
// find the message in the conversation.
const beginning = 60

// shared writes the request that continues the conversation's own: the same system prompt,
// tools and messages, which the provider reads from its cache, and one more message. It is
// nil if that is not cheaper than the transcript (own), or not possible.
//
// With S tokens of conversation, x tokens of the message after it and r the relative price of a
// cached token, it costs r·S + x. The transcript costs its size. Another model has nothing
// cached.
func shared(g llm.Generator, in *summarize.Input, own *question, code *summarize.Extractive) *prompt.Prompt {
	if in.Sent == nil || in.Sent.Model == "" || in.Sent.Model != nameOf(g) || len(in.Sent.Messages) == 0 {
		return nil
	}
	count := counter(code)
	size := sizeOf(in.Sent, count)
	rates, ok := ratesOf(in.Sent, size)
	if !ok {
		return nil
	}
	text := sharedQuestion(in, own)
	if rates.Read*float64(size)+float64(count(text)) >= float64(sizeOf(own.prompt, count)) {
		return nil
	}
	q := *in.Sent
	q.MaxOutput = 0 // the options say it
	q.Messages = append(slices.Clone(in.Sent.Messages),
		thread.Message{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Text{Text: text}}})
	return &q
}

// nameOf is the model of the innermost generator, as the conversation names it: a wrapper may
// have a longer name.
func nameOf(g llm.Generator) string {
	for {
		outer, ok := g.(interface{ Unwrap() llm.Generator })
		if !ok {
			return g.Model()
		}
		g = outer.Unwrap()
	}
}

// ratesOf are those of the table of models. A provider that caches only at marks has nothing
// cached of a request without one.
func ratesOf(sent *prompt.Prompt, size int) (token.Rates, bool) {
	known, err := token.Models().Find(sent.Model)
	if err != nil || known.Cache.Match == "breakpoint" && !marked(sent) {
		return token.Rates{}, false
	}
	return known.Rates(size)
}

// marked reports whether a request has a cache mark.
func marked(p *prompt.Prompt) bool {
	return len(p.CachePoints) > 0 || p.Source != nil && gjson.Get(p.Source.Body, "cache_control").Exists() ||
		slices.ContainsFunc(p.System, func(s prompt.System) bool { return s.Cache != "" }) ||
		slices.ContainsFunc(p.Tools, func(t prompt.Tool) bool { return t.Cache != "" }) ||
		slices.ContainsFunc(p.Messages, func(m thread.Message) bool {
			return slices.ContainsFunc(m.Parts, func(part thread.Part) bool { return part.From().Cache != "" })
		})
}

// sharedQuestion is the message after the conversation, with the mark and the rules of the
// transcript's request.
func sharedQuestion(in *summarize.Input, own *question) string {
	_, rules, _ := strings.Cut(own.prompt.System[0].Text, answerWith)
	shown := map[thread.ID]bool{}
	for i := range in.Sent.Messages {
		if m := &in.Sent.Messages[i]; m.ID != "" && m.Kind != thread.Recap {
			shown[m.ID] = true
		}
	}
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(strings.TrimSpace(sharedTemplate), "{{MARK}}", own.mark))
	b.WriteString(answerWith + rules + "\n\n" + before(own.previous))
	for i, text := range own.texts {
		if shown[in.Messages[i].ID] {
			text = oneLine(text)
			if at := clip.Boundary(text, beginning); at < len(text) {
				text = text[:at] + "…"
			}
		}
		b.WriteString(heading(own.mark, i, &in.Messages[i]) + text + "\n")
	}
	b.WriteString(own.mark + " the list ends\n\n" + ending(own.previous, in))
	return b.String()
}

// sizeOf estimates the tokens of a request, without media.
func sizeOf(p *prompt.Prompt, count func(string) int) int {
	n := 0
	for _, s := range p.System {
		n += count(s.Text)
	}
	for _, t := range p.Tools {
		n += count(t.Name) + count(t.Description) + count(t.Schema)
	}
	for i := range p.Messages {
		for _, part := range p.Messages[i].Parts {
			switch part := part.(type) {
			case thread.Text:
				n += count(part.Text)
			case thread.Reasoning:
				n += count(part.Text)
			case thread.ToolCall:
				n += count(part.Name) + count(part.Arguments)
			case thread.ToolResult:
				n += count(part.Text())
			case thread.Opaque:
				n += count(part.Text)
			}
		}
	}
	return n
}

func counter(code *summarize.Extractive) func(string) int {
	if code.Counter != nil {
		return code.Counter
	}
	return func(s string) int { return (len(s) + 3) / 4 }
}
