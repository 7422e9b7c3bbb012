package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Externalize puts large tool results aside: a pointer and a short summary stay
// in the result's place, and the call keeps its answer. Results that may not be
// cleared, because nothing verifies that their tool would give the same again
// (A7), are put aside whatever their size, as soon as that saves anything.
type Externalize struct {
	// Threshold is the size in tokens from which a result is put aside; 0 takes
	// each tool's own threshold (1,000 by default).
	Threshold int
}

// The bounds of what stays of an externalized result, in tokens: a tenth of it.
const (
	minStub, maxStub = 40, 220
	// stubFrame is what the pointer itself takes, about.
	stubFrame = 60
	// charsPerToken turns the room of an excerpt into bytes; the result is
	// counted afterwards.
	charsPerToken = 3
)

// Name returns "externalize".
func (Externalize) Name() string { return "externalize" }

// Aggressiveness makes it the first rung.
func (Externalize) Aggressiveness() int { return externalizeRung }

// Analyze proposes results one by one: what a later step has made out of date
// first, then the oldest.
func (s Externalize) Analyze(v *View) []Proposal {
	return v.results(s.Name(), func(i int, r thread.ToolResult) (keep int, reason string) {
		threshold := s.Threshold
		if threshold == 0 {
			threshold = v.Tools.Policy(r.Tool).ExternalizeThreshold
		}
		size := v.now[i]
		stub := min(max(size/10, minStub), maxStub)
		switch {
		case v.cover[i] >= 0 || size <= 2*stub+stubFrame:
			return -1, ""
		case size >= threshold:
			return stub + stubFrame, fmt.Sprintf("%d tokens, over the threshold of %d", size, threshold)
		case !v.clearable(i):
			return stub + stubFrame, "may not be cleared, and can be read back"
		}
		return -1, ""
	})
}

// Execute makes the pointer and a summary of the result.
func (s Externalize) Execute(_ context.Context, v *View, p Proposal) (plan.Record, error) {
	at := v.positions(p.Span)
	i := at[0]
	r, _ := v.messages[i].Result()
	record := plan.Externalization{
		Span:          p.Span,
		ArtifactID:    artifact.IDOf(v.Thread.ID(), r.Text()),
		Summary:       v.stub(i, max(p.Room-stubFrame, minStub)),
		RehydrateHint: "read if you need the full output of " + r.Tool,
		Origin:        v.origin(s.Name(), p.Reason, at),
	}
	record.TokensAfter, _ = v.cost(record, at)
	if record.TokensAfter >= record.TokensBefore {
		return nil, fmt.Errorf("strategy.Externalize: message %s: the pointer takes %d tokens and the result %d: %w", v.messages[i].ID, record.TokensAfter, record.TokensBefore, ErrNoGain)
	}
	return record, nil
}

// stub is what is said of one result in about this many tokens: outcome, key
// fields, and the beginning and the end of the output.
func (v *View) stub(i, tokens int) summary.Summary {
	m := &v.messages[i]
	r, _ := m.Result()
	ids := []thread.ID{m.ID}
	fields := v.keyFields(i)
	failure, _ := fields["error"].(string)
	delete(fields, "error")
	out := summary.Summary{
		ToolOutcomes: []summary.ToolOutcome{{Tool: r.Tool, Outcome: r.Outcome, KeyFields: fields, Error: failure, Turn: m.Turn, Sources: ids}},
	}
	if text := strings.TrimSpace(r.Text()); text != "" {
		out.Facts = []summary.Item{{Text: clip.Middle(text, tokens*charsPerToken), Turn: m.Turn, Sources: ids}}
	}
	return out
}

// results proposes the free tool results that judge accepts, superseded ones
// first and then the oldest. judge returns what would stay of a result, in
// tokens, or a negative number.
func (v *View) results(name string, judge func(i int, r thread.ToolResult) (keep int, reason string)) []Proposal {
	var stale, old []Proposal
	for i := range v.messages {
		r, ok := v.messages[i].Result()
		if !ok || !v.Free(i) {
			continue
		}
		keep, reason := judge(i, r)
		if keep < 0 || keep >= v.now[i] {
			continue
		}
		p := Proposal{Strategy: name, Span: v.span([]int{i}), EstimatedTokensFreed: v.now[i] - keep, Reason: reason, Room: keep}
		if v.superseded[i] != "" {
			p.Reason = v.superseded[i]
			stale = append(stale, p)
			continue
		}
		old = append(old, p)
	}
	return slices.Concat(stale, old)
}

// clearable holds A7: ephemeral and anchoring results may be cleared, a
// replayable one only while its source verifiably has not changed, a
// non-replayable one never.
func (v *View) clearable(i int) bool {
	r, _ := v.messages[i].Result()
	switch v.Tools.Durability(r) {
	case thread.Ephemeral, thread.Anchoring:
		return true
	case thread.Replayable:
		if r.Determinism == nil || v.Current == nil {
			return false
		}
		current, known := v.Current(v.call(i))
		return known && !r.Determinism.Changed(current)
	}
	return false
}

// keyFields are the fields that survive in place of the result at i. What the
// call beside it says anyway is left out.
func (v *View) keyFields(i int) thread.Fields {
	r, _ := v.messages[i].Result()
	call := v.call(i)
	fields := v.Tools.KeyFields(call, r)
	if v.inPlace(i) {
		for name, value := range fields {
			if _, declared := r.KeyFields[name]; !declared && said(call, value) {
				delete(fields, name)
			}
		}
	}
	return fields
}
