package locomo

import (
	"context"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/lab/budget"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// fit is what a contender leaves of a conversation.
type fit struct {
	Contender string
	// Text is all that the prompt shows, as lines of plain text.
	Text string
	// Removed can be looked up; empty for contenders that have no lookups.
	Removed []recall.Entry
	// Over: the prompt is beyond the budget.
	Over bool
}

// notForTalk are the contenders that need calls or references; on a talk between people
// they do the same as the sliding window.
var notForTalk = map[string]bool{
	references.OracleName: true, "mask 10, recency": true, "clear tool uses keep 3, recency": true, "AI SDK prune 20, recency": true, references.BestSimple: true,
}

// fitted compacts a talk without calls into a budget, written as for eval, by every
// contender but those of notForTalk, in the order of reports. The last exchange is
// always kept. There are several draws of random, one after another.
func fitted(ctx context.Context, talk *thread.Thread, size string, counter *token.Counter) ([]fit, error) {
	tokens, share, err := budget.Parse(size)
	if err != nil {
		return nil, err
	}
	s, err := references.NewSession(&transcript.Transcript{Name: talk.ID(), Thread: talk}, "", "", counter)
	if err != nil {
		return nil, err
	}
	s.Link(func(ident.Ident) bool { return true })
	m := &references.Moment{Session: s, At: s.Thread.Len(), Tail: max(0, s.Thread.Len()-2), Size: s.Total, Entries: s.Entries()}
	for _, size := range s.Sizes[m.Tail:] {
		m.Rest += size
	}
	if tokens == 0 {
		tokens = int(share * float64(m.Size+s.Fixed))
	}
	contenders, err := references.Contenders(ctx, counter)
	if err != nil {
		return nil, err
	}
	known := map[string][]references.Contender{}
	for _, c := range contenders {
		known[c.Name] = []references.Contender{c}
	}
	for seed := range uint64(references.RandomDraws) {
		known[references.RandomName] = append(known[references.RandomName], references.Random(seed))
	}
	var out []fit
	for _, name := range references.ContenderOrder {
		for _, c := range known[name] {
			if notForTalk[name] {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			shown := c.Fit(m, tokens)
			var b strings.Builder
			for _, i := range shown.Kept {
				b.WriteString(s.Texts[i] + "\n")
			}
			for i := range shown.Other {
				text, _ := references.MessageLines(&shown.Other[i])
				b.WriteString(text + "\n")
			}
			out = append(out, fit{Contender: name, Text: b.String(), Removed: m.Removed(shown), Over: shown.Tokens > tokens})
		}
	}
	return out, nil
}
