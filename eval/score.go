package eval

import "github.com/palimpsest-ai/palimpsest/internal/uncopied"

// found says of one need whether the prompt holds it, holds it with what tells
// what it is, and whether one lookup brings it back.
type found struct {
	direct, bound bool
	// strict: what tells what it is stood beside it at its first mention.
	strict bool
	// first: by opening the best match, lookup: by that or the answer of one recall.
	lookup, first bool
	// pointer: something in the prompt points at a message that holds it.
	pointer bool
}

// scan says what is found in what is shown.
func (m *moment) scan(s *shown) []found {
	out := make([]found, len(m.refs))
	kept := make([]bool, m.at)
	for _, i := range s.kept {
		kept[i] = true
	}
	at := map[int32]int{}
	for i, n := range m.refs {
		at[n.id] = i
		for _, seen := range n.seen {
			out[i].pointer = out[i].pointer || seen.pos < m.tail && s.pointed[uncopied.At(m.thread, seen.pos).ID]
		}
		for _, seen := range n.seen {
			if seen.pos < m.at && kept[seen.pos] {
				out[i].direct, out[i].bound = true, true
				out[i].strict = out[i].strict || seen.strict
			}
		}
	}
	for i := range s.other {
		text, _ := sayings(&s.other[i])
		m.find.find(text, func(id int32, from, to int) {
			i, ok := at[id]
			if !ok || out[i].strict {
				return
			}
			bound, strict := m.refs[i].boundAt(text, from, to)
			out[i].direct = true
			out[i].bound = out[i].bound || bound
			out[i].strict = strict
		})
	}
	return out
}
