// Package plan says, as pure data, what stands in a prompt instead of which
// messages of a thread (seed A, A3 and A4).
//
// A plan lists records. Each covers a span of explicit message ids with one
// action: externalize (a pointer and a summary), summarize (a summary), clear
// (a placeholder) or drop (nothing). Messages that no record covers are
// included as they are. Summaries are embedded, so rendering a plan needs
// nothing but the thread.
//
//	draft := plan.Plan{ThreadID: t.ID(), Clearings: …}
//	p, warnings := draft.Normalize()     // overlaps resolved by precedence
//	err := p.Validate(t)                 // an error, never a repair
//	data, err := json.Marshal(p)         // versioned; read it back with Parse
//
// A plan stands on its own: it holds all that is in force, also the records that it
// has taken over from the plan before it. Since tells which of them are new. Undo is
// choosing an earlier plan.
//
// Plans are values: nothing changes one after it was validated, and they are
// safe for concurrent reading. All sizes are tokens, as Plan.Counter counts them.
package plan
