package eval

import (
	"context"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// Fit is what a contender leaves of a conversation.
type Fit struct {
	Contender string
	// Text is all that the prompt shows, as lines of plain text.
	Text string
	// Removed can be looked up; empty for contenders that have no lookups.
	Removed []recall.Entry
	// Over: the prompt is beyond the budget.
	Over bool
}

// notForTalk are the contenders that need calls or references to do anything of
// their own; in a talk between people they are the sliding window.
var notForTalk = map[string]bool{
	oracleName: true, "mask 10, recency": true, "clear tool uses keep 3, recency": true, "AI SDK prune 20, recency": true, bestSimple: true,
}

// Fits compacts a talk without calls into a budget, written as in Options, by every
// contender that has a way of its own to do so, in the order of reports; the last
// exchange is always kept. Of random there are several, one after another.
func Fits(ctx context.Context, talk *thread.Thread, budget string, counter *token.Counter) ([]Fit, error) {
	b, err := parseBudget(budget)
	if err != nil {
		return nil, fmt.Errorf("eval.Fits: %w", err)
	}
	s, err := newSession(&transcript.Transcript{Name: talk.ID(), Thread: talk}, "", "", counter)
	if err != nil {
		return nil, fmt.Errorf("eval.Fits: %w", err)
	}
	s.link(func(ident.Ident) bool { return true })
	m := &moment{session: s, at: s.thread.Len(), tail: max(0, s.thread.Len()-2), size: s.total, all: s.entries()}
	for _, size := range s.sizes[m.tail:] {
		m.rest += size
	}
	tokens := b.of(s, m.size)
	e, err := newEngine(ctx, counter)
	if err != nil {
		return nil, fmt.Errorf("eval.Fits: %w", err)
	}
	known := map[string][]contender{}
	for _, c := range append(simple(counter), e.contenders()...) {
		known[c.name] = []contender{c}
	}
	for seed := range uint64(randoms) {
		known[randomName] = append(known[randomName], random(counter, seed))
	}
	var out []Fit
	for _, name := range order {
		for _, c := range known[name] {
			if notForTalk[name] {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("eval.Fits: %w", err)
			}
			shown := c.render(m, tokens)
			var b strings.Builder
			for _, i := range shown.kept {
				b.WriteString(s.texts[i] + "\n")
			}
			for i := range shown.other {
				text, _ := sayings(&shown.other[i])
				b.WriteString(text + "\n")
			}
			out = append(out, Fit{Contender: name, Text: b.String(), Removed: m.removed(shown), Over: shown.tokens > tokens})
		}
	}
	return out, nil
}
