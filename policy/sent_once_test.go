package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// reader notes what it is sent, and answers with what it was told last of some shelf.
type reader struct {
	sent []string // the messages of each request
}

func (*reader) Model() string { return "reader" }

func (r *reader) Generate(_ context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	var b strings.Builder
	for i := range p.Messages {
		b.WriteString(p.Messages[i].Text() + "\n")
	}
	r.sent = append(r.sent, b.String())
	var said []string
	for line := range strings.Lines(b.String()) {
		if at := strings.Index(line, "Shelf "); at >= 0 && len(said) < 400 {
			said = append(said, strings.TrimSpace(strings.Split(strings.Split(line[at:], ".")[0], "\\n")[0]))
		}
	}
	said = said[max(0, len(said)-12):]
	reply := &llm.Reply{Stop: wire.StopEnd, Message: speak(thread.Assistant, "")}
	if o == nil || o.Schema == nil {
		reply.Text = "## Current State\n- " + strings.Join(said, "\n- ")
		return reply, nil
	}
	var facts []any
	for _, s := range said {
		facts = append(facts, map[string]any{"text": s, "sources": []int{1, 2, 3}})
	}
	doc, err := json.Marshal(map[string]any{
		"facts":       facts,
		"summary":     map[string]any{"key_facts": said, "conversation_flow": []string{}, "open_threads": []string{}},
		"state_delta": map[string]any{},
	})
	reply.Text, reply.JSON = string(doc), string(doc)
	return reply, err
}

// inventory is a part of a conversation of about 24,000 tokens, no word of which stands in another.
func inventory(round int) (messages []thread.Message) {
	for n := range 24 {
		id := 100*round + n
		messages = append(messages, speak(thread.User, fmt.Sprintf("Count shelf %d, please.", id)))
		var b strings.Builder
		for k := range 60 {
			fmt.Fprintf(&b, "Shelf %d holds %d crates of ware number w%d-%d in row %d. ", id, 7*id+k, id, k, k)
		}
		messages = append(messages, speak(thread.Assistant, b.String()))
	}
	return messages
}

// TestSentOnce: over five compactions a model is sent what no summary holds yet, once, and the
// summaries before; never the session from its start.
func TestSentOnce(t *testing.T) {
	const window = 40_000
	configs := func(g llm.Generator) map[string]palimpsest.Config {
		own := func(p policy.Policy) palimpsest.Config { return palimpsest.Config{Policy: p} }
		return map[string]palimpsest.Config{
			"auto":       {Policy: policy.Auto{}, Summarizer: model.New(nil, g)},
			"ladder":     {Policy: policy.Ladder{MaxInputTokens: window}, Summarizer: model.New(nil, g)},
			"session":    own(policy.Session{Model: g, Keep: 4}),
			"timeline":   own(policy.Timeline{Model: g, MaxTokens: window}),
			"workstream": own(policy.Workstream{Model: g, Tail: 4}),
			"loop":       own(policy.Loop{Model: g, Preserve: 0.1}),
		}
	}
	for _, name := range slices.Sorted(maps.Keys(configs(&reader{}))) {
		t.Run(name, func(t *testing.T) {
			r := &reader{}
			c, err := palimpsest.New(configs(r)[name])
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("store")
			step := palimpsest.Step{Profile: render.For(wire.Chat), Window: 1_000_000}
			said, summaries := 0, 0
			for round := range 5 {
				step.Messages, step.Budget = inventory(round+1), 0
				for i := range step.Messages {
					said += len(step.Messages[i].Text())
				}
				if _, err := s.PrepareStep(t.Context(), step); err != nil {
					t.Fatal(err)
				}
				step.Messages, step.Budget = nil, 8_000
				from := len(r.sent)
				p, err := s.Compact(t.Context(), step, "")
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				n := 0
				for _, text := range r.sent[from:] {
					n += len(text)
				}
				size := 0
				for _, record := range p.Summarizations {
					size += 4 * record.SummaryTokens
				}
				t.Logf("round %d: %d requests, %d bytes sent; summaries of %d bytes", round+1, len(r.sent)-from, n, size)
				summaries += size
			}
			total := 0
			for _, text := range r.sent {
				total += len(text)
			}
			t.Logf("%d bytes were said, %d in summaries, %d sent", said, summaries, total)
			if total > said*11/10+summaries {
				t.Errorf("%d bytes were sent, of %d and summaries of %d", total, said, summaries)
			}
		})
	}
}
