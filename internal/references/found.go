package references

import "github.com/palimpsest-ai/palimpsest/internal/uncopied"

// Found says of one need whether the prompt holds it, holds it with what tells
// what it is, and whether one lookup brings it back.
type Found struct {
	Direct, Bound bool
	// Strict: what tells what it is stood beside it at its first mention.
	Strict bool
	// first: by opening the best match, lookup: by that or the answer of one recall.
	Lookup, First bool
	// Pointer: something in the prompt points at a message that holds it.
	Pointer bool
}

// Scan says what is found in what is shown.
func (m *Moment) Scan(s *Shown) []Found {
	out := make([]Found, len(m.Refs))
	kept := make([]bool, m.At)
	for _, i := range s.Kept {
		kept[i] = true
	}
	at := map[int32]int{}
	for i, n := range m.Refs {
		at[n.ID] = i
		for _, seen := range n.Seen {
			out[i].Pointer = out[i].Pointer || seen.Pos < m.Tail && s.pointed[uncopied.At(m.Thread, seen.Pos).ID]
		}
		for _, seen := range n.Seen {
			if seen.Pos < m.At && kept[seen.Pos] {
				out[i].Direct, out[i].Bound = true, true
				out[i].Strict = out[i].Strict || seen.Strict
			}
		}
	}
	for i := range s.Other {
		text, _ := MessageLines(&s.Other[i])
		m.Find.Find(text, func(id int32, from, to int) {
			i, ok := at[id]
			if !ok || out[i].Strict {
				return
			}
			bound, strict := m.Refs[i].isBoundAt(text, from, to)
			out[i].Direct = true
			out[i].Bound = out[i].Bound || bound
			out[i].Strict = strict
		})
	}
	return out
}
