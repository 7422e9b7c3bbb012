package summarize

import "github.com/palimpsest-ai/palimpsest/thread"

// names are the identifiers of a span and what each is worth in a summary.
type names struct {
	id     map[string]int32
	weight []float32
}

// stat is where an identifier was seen.
type stat struct {
	messages, last, calls int32 // how many messages, the last of them, how many calls
	from                  origin
	inContext             bool
}

// origin says who used an identifier.
type origin uint8

const (
	fromResult origin = 1 << iota
	fromAssistant
	fromCall
	fromUser
	fromError
	fromChange
)

// learn finds the identifiers and their weights: the likelier that a later step
// needs it, and that it could not find it otherwise, the more. What stays in the
// prompt anyway is worth next to nothing. It returns how many mentions it saw.
func (n *names) learn(all []*facts, context []thread.Message, of func(*thread.Message) *facts) (mentions int) {
	n.id = make(map[string]int32, 4096)
	stats := make([]stat, 0, 4096)
	see := func(s string, at int, from origin) {
		mentions++
		id, ok := n.id[s]
		if !ok {
			id = int32(len(stats))
			n.id[s] = id
			stats = append(stats, stat{last: -1})
		}
		st := &stats[id]
		if st.last != int32(at) {
			st.messages++
			st.last = int32(at)
		}
		if from == fromCall {
			st.calls++
		}
		st.from |= from
	}
	for i, f := range all {
		each(f, func(s string, from origin) { see(s, i, from) })
	}
	for i := range context {
		each(of(&context[i]), func(s string, _ origin) {
			if id, ok := n.id[s]; ok {
				stats[id].inContext = true
			}
		})
	}
	n.weight = make([]float32, len(stats))
	for s, id := range n.id {
		n.weight[id] = worth(s, &stats[id], len(all))
	}
	return mentions
}

// each calls yield with every identifier of a message and who used it.
func each(f *facts, yield func(string, origin)) {
	all := func(pieces []piece, from origin) {
		for i := range pieces {
			for _, s := range pieces[i].idents {
				yield(s, from)
			}
		}
	}
	for _, s := range f.idents {
		yield(s, fromUser)
	}
	for i := range f.said {
		from := fromAssistant
		if f.said[i].code {
			from = fromChange // a sketch of code, not a name that was spoken of
		}
		for _, s := range f.said[i].idents {
			yield(s, from)
		}
	}
	all(f.recap, fromAssistant)
	for i := range f.calls {
		c := &f.calls[i]
		for _, s := range c.idents {
			yield(s, fromCall)
		}
		all(c.changed, fromChange)
	}
	if f.result != nil {
		all(f.result.keys, fromResult)
		all(f.result.errors, fromResult|fromError)
	}
}

// worth is the weight of one identifier. The factors were set by measuring how
// often identifiers of recorded sessions came back in arguments of later calls.
func worth(s string, st *stat, n int) float32 {
	w := float32(0.7)
	if strong(s) {
		w = 1
	}
	switch {
	case st.from&fromUser != 0:
		w *= 1.5
	case st.calls >= 3:
		w *= 1.6
	case st.calls >= 1:
		w *= 1.1
	case st.from&fromAssistant != 0:
		w *= 0.9
	case st.from&fromError != 0:
		w *= 0.5
	default:
		w *= 0.25
		if st.messages > 2 {
			w *= 1.6
		}
	}
	age := float32(st.last+1) / float32(max(n, 1))
	w *= 0.35 + 0.65*age*age
	if st.inContext {
		w *= 0.1
	}
	return w
}
