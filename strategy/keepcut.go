package strategy

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/cut"
	"github.com/palimpsest-ai/palimpsest/plan"
)

// exactly is the Summarize of a cut that the user asked for: what lies before the
// cut is summarized, all of it, also where there would be room for more. Only calls
// that wait for their results stay wherever they are.
type exactly struct{ Summarize }

// hold lets go of what the level of protection would keep before the cut, and
// protects what the cut keeps, as long as the level protects more than the last
// step. A kept part that does not fit becomes shorter at the levels behind it.
func (s exactly) hold(v *View) {
	at := s.Keep.Cut(cut.Legal(v.Thread, v.Pairs), func(i int) int { return v.now[i] })
	if v.level < LastStep {
		v.Tail = at
	} else {
		v.Tail = max(v.Tail, at)
	}
	clear(v.Anchored)
	for i := range v.messages {
		if i < at && !v.Pairs.Open(i) {
			v.Pinned[i] = false
		}
		if v.Pinned[i] {
			v.anchor(i)
		}
	}
}

// Fill gives room that was left over to the largest summary. It takes no message
// back out of it.
func (s exactly) Fill(ctx context.Context, v *View) { s.fuller(ctx, v) }

// held is the cut that a ladder keeps to, if it has one.
func (l Ladder) held() (exactly, bool) {
	for _, rung := range l {
		if s, ok := rung.(exactly); ok {
			return s, true
		}
	}
	return exactly{}, false
}

// summarizes reports whether a record is one that a cut has asked for.
func summarizes(record plan.Record) bool { return record.Action() == plan.Summarize }
