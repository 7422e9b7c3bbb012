package plan

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Change is a message that two plans treat differently. The refs point into
// the plan of their side; an included message has the zero Ref.
type Change struct {
	ID   thread.ID `json:"message_id"`
	From Ref       `json:"from"`
	To   Ref       `json:"to"`
}

// Diff lists the messages that a and b treat differently, in the order in which
// a and then b name them. Two records of the same action over the same message
// differ when their spans or their embedded texts do.
func Diff(a, b *Plan) []Change {
	from, to := a.Actions(), b.Actions()
	var changes []Change
	seen := make(map[thread.ID]bool, len(from))
	compare := func(_ Ref, s *thread.Span, _ *Origin) {
		for _, id := range s.MessageIDs {
			if seen[id] {
				continue
			}
			seen[id] = true
			if f, g := from[id], to[id]; f.Action != g.Action || (f.Action != Include && !a.sameRecord(f, b, g)) {
				changes = append(changes, Change{ID: id, From: f, To: g})
			}
		}
	}
	a.each(compare)
	b.each(compare)
	return changes
}

// sameRecord reports whether two records of one action show the model the same.
func (p *Plan) sameRecord(f Ref, q *Plan, g Ref) bool {
	switch f.Action {
	case Clear:
		return p.Clearings[f.Index].PreservedFields.String() == q.Clearings[g.Index].PreservedFields.String()
	case Summarize:
		x, y := p.Summarizations[f.Index], q.Summarizations[g.Index]
		return x.Span.First() == y.Span.First() && slices.Equal(x.Stand, y.Stand) && x.Summary.Render() == y.Summary.Render()
	case Externalize:
		x, y := p.Externalizations[f.Index], q.Externalizations[g.Index]
		return x.Span.First() == y.Span.First() && x.ArtifactID == y.ArtifactID && x.Summary.Render() == y.Summary.Render()
	}
	return true
}
