package plan

import (
	"reflect"
	"slices"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Change is a message that two plans treat differently. Each Ref points into the plan of
// its side; an included message has the zero Ref.
type Change struct {
	ID   thread.ID `json:"message_id"`
	From Ref       `json:"from"`
	To   Ref       `json:"to"`
}

// Diff lists the messages that a and b treat differently, in the order in which a and then
// b name them. Two records of the same action over a message differ when their spans or
// their embedded texts do.
func Diff(a, b *Plan) []Change {
	from, to := a.Actions(), b.Actions()
	var changes []Change
	seen := make(map[thread.ID]bool, len(from))
	for _, p := range []*Plan{a, b} {
		for _, s := range p.spans() {
			for _, id := range s.MessageIDs {
				f, g := from[id], to[id]
				if !seen[id] && (f.Action != g.Action || f.Action != Include && !a.sameRecord(f, b, g)) {
					changes = append(changes, Change{ID: id, From: f, To: g})
				}
				seen[id] = true
			}
		}
	}
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

// Since lists the records that are new in the plan, lowest precedence first: those that
// before does not hold in the same form. A nil before holds none.
func (p *Plan) Since(before *Plan) []Record {
	earlier := map[string][]Record{}
	for _, r := range before.Records() {
		earlier[keyOf(r)] = append(earlier[keyOf(r)], r)
	}
	var fresh []Record
	for _, r := range p.Records() {
		if !slices.ContainsFunc(earlier[keyOf(r)], func(old Record) bool { return reflect.DeepEqual(old, r) }) {
			fresh = append(fresh, r)
		}
	}
	return fresh
}

func keyOf(r Record) string {
	s := r.Covers()
	return r.Action().String() + " " + string(s.First()) + " " + string(s.Last())
}
