package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/summary"
)

// WithoutOutdated is a summary without the facts, decisions, steps, open items and failed
// attempts of those texts, or nil for nil. What the user said stays whatever is asked.
func WithoutOutdated(s *summary.Summary, texts []string) *summary.Summary {
	if s == nil || len(texts) == 0 {
		return s
	}
	gone := map[string]bool{}
	for _, t := range texts {
		gone[plainly(t)] = true
	}
	out := *s
	out.Facts = left(s.Facts, func(it summary.Item) bool { return gone[plainly(it.Text)] })
	out.FailedAttempts = left(s.FailedAttempts, func(it summary.Item) bool { return gone[plainly(it.Text)] })
	out.Decisions = left(s.Decisions, func(d summary.Decision) bool { return gone[plainly(d.Decision)] })
	out.CurrentPlan = left(s.CurrentPlan, func(x summary.Step) bool { return gone[plainly(x.Text)] })
	out.OpenItems = left(s.OpenItems, func(o summary.OpenItem) bool { return gone[plainly(o.Description)] })
	return &out
}

func left[T any](list []T, gone func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), gone)
}

// plainly is a text as two of them are compared: who repeats one may drop the full stop.
func plainly(s string) string { return strings.TrimRight(oneLine(s), ".") }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
