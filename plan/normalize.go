package plan

import (
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Normalize returns the plan with every message in at most one record, and says
// what it changed. Where records overlap the precedence Drop > Externalize >
// Summarize > Clear decides, then the earlier record; the loser's span loses
// the message, and a record whose span is empty goes. What remains of a span
// renders once, at its first remaining message. Normalizing twice changes
// nothing more.
func (p Plan) Normalize() (Plan, []string) {
	actions := p.Actions()
	owner := make(map[thread.ID]Ref, len(actions))
	var warnings []string
	out := p
	out.Clearings = slices.Clone(p.Clearings)
	out.Summarizations = slices.Clone(p.Summarizations)
	out.Externalizations = slices.Clone(p.Externalizations)
	out.Drops = slices.Clone(p.Drops)
	out.each(func(ref Ref, s *thread.Span, _ *Origin) {
		taken := func(id thread.ID) bool {
			winner := actions[id]
			if winner != ref {
				warnings = append(warnings, fmt.Sprintf("message %s is in both %s and %s; %s takes precedence", id, ref, winner, winner))
				return true
			}
			_, twice := owner[id]
			owner[id] = ref
			return twice
		}
		*s = s.Without(taken)
	})
	out.Clearings = slices.DeleteFunc(out.Clearings, func(r Clearing) bool { return r.Span.Len() == 0 })
	out.Summarizations = slices.DeleteFunc(out.Summarizations, func(r Summarization) bool { return r.Span.Len() == 0 })
	out.Externalizations = slices.DeleteFunc(out.Externalizations, func(r Externalization) bool { return r.Span.Len() == 0 })
	out.Drops = slices.DeleteFunc(out.Drops, func(r Removal) bool { return r.Span.Len() == 0 })
	return out, warnings
}
