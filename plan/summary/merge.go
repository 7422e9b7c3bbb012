package summary

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// operations is the order in which operations on a file are listed.
var operations = []string{"read", "created", "edited", "deleted"}

// Merge joins two summaries of one thread, of which b is the later. Code does it, so
// nothing is lost in a rewrite: what is said twice is kept once, with the sources of both;
// of plan, statuses, files, the state of the work and what stands elsewhere the later wins; requests, constraints
// and decisions only add up. Merging the same content again changes nothing. The inputs
// are not changed.
func Merge(a, b Summary) Summary {
	out := Summary{Span: mergeSpans(a.Span, b.Span), CurrentTask: b.CurrentTask, CurrentPlan: slices.Clone(b.CurrentPlan), Elsewhere: slices.Clone(b.Elsewhere)}
	requests := a.Requests
	switch {
	case b.CurrentTask == "":
		out.CurrentTask = a.CurrentTask
	case a.CurrentTask != "" && a.CurrentTask != b.CurrentTask && !states(a.Requests, a.CurrentTask):
		// The task of a stands in no message; without this its words would go.
		requests = append(slices.Clone(requests), Item{Text: a.CurrentTask})
	}
	if len(b.CurrentPlan) == 0 {
		out.CurrentPlan = slices.Clone(a.CurrentPlan)
	}

	out.Requests = mergeItems(requests, b.Requests)
	out.Constraints = mergeItems(a.Constraints, b.Constraints)
	out.Stated = mergeItems(a.Stated, b.Stated)
	out.Unlisted = a.Unlisted + b.Unlisted
	out.MoreFiles, out.MoreChanged = a.MoreFiles+b.MoreFiles, a.MoreChanged+b.MoreChanged
	out.Facts = mergeItems(a.Facts, b.Facts)
	out.FailedAttempts = mergeItems(a.FailedAttempts, b.FailedAttempts)
	out.Reports = mergeItems(a.Reports, b.Reports)
	if out.Work = b.Work; out.Work.IsZero() { // it was read off the log, the part of a included
		out.Work = a.Work
	}
	out.Conclusions = mergeItems(a.Conclusions, b.Conclusions)
	out.Identifiers = mergeItems(a.Identifiers, b.Identifiers)
	out.Decisions = merge(a.Decisions, b.Decisions,
		func(d Decision) string { return d.Decision },
		func(x, y Decision) Decision {
			y.Rationale = cmp.Or(y.Rationale, x.Rationale)
			y.Turn, y.Time = x.Turn, x.Time // when it was taken, not when it was repeated
			y.Sources = union(x.Sources, y.Sources)
			return y
		})
	out.OpenItems = merge(a.OpenItems, b.OpenItems,
		func(o OpenItem) string { return o.Description },
		func(x, y OpenItem) OpenItem {
			y.Context, y.Priority = cmp.Or(y.Context, x.Context), cmp.Or(y.Priority, x.Priority)
			y.Turn = max(x.Turn, y.Turn)
			y.Sources = union(x.Sources, y.Sources)
			return y
		})
	out.Files = merge(a.Files, b.Files,
		func(f File) string { return f.Path },
		func(x, y File) File {
			y.Turn = max(x.Turn, y.Turn) // any other rule would depend on what is joined first
			y.Operations = mergeOperations(x.Operations, y.Operations)
			y.Note = cmp.Or(y.Note, x.Note)
			y.Sources = union(x.Sources, y.Sources)
			return y
		})
	out.ToolOutcomes = merge(a.ToolOutcomes, b.ToolOutcomes,
		func(o ToolOutcome) string { return o.Tool + "\x00" + o.Input },
		func(x, y ToolOutcome) ToolOutcome {
			y.Turn = max(x.Turn, y.Turn)
			y.Sources = union(x.Sources, y.Sources)
			return y
		})
	out.Artifacts = merge(a.Artifacts, b.Artifacts,
		func(r ArtifactReference) string { return r.ArtifactID },
		func(x, y ArtifactReference) ArtifactReference {
			y.Description, y.RehydrateHint = cmp.Or(y.Description, x.Description), cmp.Or(y.RehydrateHint, x.RehydrateHint)
			y.Turn = max(x.Turn, y.Turn)
			y.Sources = union(x.Sources, y.Sources)
			return y
		})
	return out
}

func mergeItems(a, b []Item) []Item {
	return merge(a, b,
		func(it Item) string { return it.Text + it.Asked },
		func(x, y Item) Item {
			// The turn stays that of the first time it was said.
			if x.Turn == 0 {
				x.Turn = y.Turn
			}
			x.Sources = union(x.Sources, y.Sources)
			return x
		})
}

// merge lists a and then b, with entries of the same key joined at the place of the first.
func merge[T any, K comparable](a, b []T, key func(T) K, join func(earlier, later T) T) []T {
	if len(a)+len(b) == 0 {
		return nil
	}
	out := make([]T, 0, len(a)+len(b))
	at := make(map[K]int, len(a)+len(b))
	for _, list := range [2][]T{a, b} {
		for _, e := range list {
			k := key(e)
			if i, ok := at[k]; ok {
				out[i] = join(out[i], e)
				continue
			}
			at[k] = len(out)
			out = append(out, e)
		}
	}
	return out
}

// states reports whether one of the requests contains the task, which may be a message
// trimmed in the middle.
func states(requests []Item, task string) bool {
	head, _, _ := strings.Cut(task, "[…")
	head = strings.TrimSpace(head)
	return slices.ContainsFunc(requests, func(r Item) bool { return strings.HasPrefix(r.Text, head) })
}

func mergeSpans(a, b thread.Span) thread.Span {
	s := thread.Span{MessageIDs: union(a.MessageIDs, b.MessageIDs), FirstTurn: min(a.FirstTurn, b.FirstTurn), LastTurn: max(a.LastTurn, b.LastTurn)}
	switch {
	case a.Len() == 0:
		s.FirstTurn, s.LastTurn = b.FirstTurn, b.LastTurn
	case b.Len() == 0:
		s.FirstTurn, s.LastTurn = a.FirstTurn, a.LastTurn
	}
	return s
}

// union lists a and then what only b has.
func union[T comparable](a, b []T) []T {
	return merge(a, b, func(x T) T { return x }, func(x, _ T) T { return x })
}

// mergeOperations joins what was done to a file, b later. "deleted" stays only while it is
// the last operation: it says that the file is gone.
func mergeOperations(a, b []string) []string {
	if len(b) > 0 && !slices.Contains(b, "deleted") {
		a = slices.DeleteFunc(slices.Clone(a), func(op string) bool { return op == "deleted" })
	}
	all := union(a, b)
	order := func(op string) uint { return uint(slices.Index(operations, op)) } // others come last
	slices.SortStableFunc(all, func(x, y string) int { return cmp.Compare(order(x), order(y)) })
	return all
}
