package eval

import (
	"context"
	"slices"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/token"
)

// What a lookup costs: the call and its result, in tokens. A call that reads the source
// again is as long, and its result is the message that first held what is missing.
const (
	callTokens  = 100
	replyTokens = 500
)

// billLookups bills what the agent must fetch: a reference that is not in the prompt
// costs a lookup where one finds it, and reading its source again where none does. What
// was fetched counts as known for as many steps as a moment looks ahead.
func (r *replay) billLookups(ctx context.Context, s *sessionCost, entries []recall.Entry, counter *token.Counter) error {
	asked := make([]int, len(r.Steps)) // the request of each step
	for k, a := range r.requests {
		for step := a.step; step < len(asked); step++ {
			asked[step] = k
		}
	}
	type call struct{ step, source int }
	seen := map[int32]int{}
	for _, c := range s.cuts {
		until := len(r.Steps)
		if c.until < len(r.requests) {
			until = r.requests[c.until].step
		}
		if r.requests[c.k].step == 0 {
			continue
		}
		m := r.MomentTo(r.requests[c.k].step, until)
		m.Needs = slices.DeleteFunc(m.Needs, func(n references.Need) bool {
			fetched, ok := seen[n.ID]
			return ok && n.Step < fetched+references.Horizon
		})
		if len(m.Needs) == 0 {
			continue
		}
		m.Entries = entries
		out := m.Scan(c.shown)
		if err := m.Lookups(ctx, c.shown, out, counter); err != nil {
			return err
		}
		calls := map[call]bool{}
		for i, n := range m.Needs {
			s.refs++
			// Direct counts here: the agent need not look up what is in front of it.
			if out[i].Direct {
				s.direct++
				continue
			}
			found := out[i].Lookup
			if found {
				s.found++
			}
			seen[n.ID] = n.Step
			source := call{n.Step, n.Seen[0].Pos}
			if calls[source] {
				continue
			}
			calls[source] = true
			size := float64(s.sizes[asked[n.Step]])
			reply := float64(replyTokens)
			if found {
				s.lookups++
			} else {
				s.rereads++
				reply = float64(r.sizes[n.Seen[0].Pos])
			}
			rates, token := r.price(s.sizes[asked[n.Step]])
			s.extra += token * (rates.Read*size + rates.Write*(callTokens+reply) + rates.Output*callTokens)
		}
	}
	return nil
}
