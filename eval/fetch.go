package eval

import (
	"context"
	"slices"

	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/token"
)

// What a lookup is taken to cost: the call and what it brings, in tokens. A call
// that reads the source again is as long, and brings the message that first held
// what is missed.
const (
	callTokens  = 100
	replyTokens = 500
)

// fetch bills what the agent must look up or read again: references that do not
// stand in the prompt cost a lookup where one finds them, and reading their
// source again where none does. What was fetched stays in sight for as many steps
// as a moment looks ahead.
func (r *replay) fetch(ctx context.Context, s *spent, entries []recall.Entry, counter *token.Counter) error {
	asked := make([]int, len(r.steps)) // the request of each step
	for k, a := range r.asks {
		for step := a.step; step < len(asked); step++ {
			asked[step] = k
		}
	}
	type call struct{ step, source int }
	seen := map[int32]int{}
	for _, c := range s.cuts {
		until := len(r.steps)
		if c.until < len(r.asks) {
			until = r.asks[c.until].step
		}
		if r.asks[c.k].step == 0 {
			continue
		}
		m := r.momentTo(r.asks[c.k].step, until)
		m.refs = slices.DeleteFunc(m.refs, func(n need) bool { fetched, ok := seen[n.id]; return ok && n.step < fetched+horizon })
		if len(m.refs) == 0 {
			continue
		}
		m.all = entries
		out := m.scan(c.shown)
		if err := m.lookups(ctx, c.shown, out, counter); err != nil {
			return err
		}
		calls := map[call]bool{}
		for i, n := range m.refs {
			s.refs++
			// A reference without what tells what it is stands there all the same.
			if out[i].direct {
				s.direct++
				continue
			}
			found := out[i].lookup
			if found {
				s.found++
			}
			seen[n.id] = n.step
			source := call{n.step, n.seen[0].pos}
			if calls[source] {
				continue
			}
			calls[source] = true
			size := float64(s.sizes[asked[n.step]])
			reply := float64(replyTokens)
			if found {
				s.lookups++
			} else {
				s.rereads++
				reply = float64(r.sizes[n.seen[0].pos])
			}
			s.extra += r.rates.Read*size + r.rates.Write*(callTokens+reply) + r.rates.Output*callTokens
		}
	}
	return nil
}
