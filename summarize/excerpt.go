package summarize

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Excerpts shortens outputs of a thread to the lines that a later step most likely
// needs. It is safe for concurrent reading.
type Excerpts struct{ names names }

// Excerpts learns what is in use in a thread.
func (e *Extractive) Excerpts(messages []thread.Message) *Excerpts {
	all := make([]*facts, len(messages))
	for i := range messages {
		all[i] = e.facts(&messages[i])
	}
	x := &Excerpts{}
	x.names.learn(&Input{Messages: messages}, all, e.facts)
	return x
}

// Shorten returns a text in at most about n bytes: its first line and the lines
// worth most for their length, in their order, verbatim but for white space and
// line numbers at their ends. A gap is marked, and the end says how much is missing.
// With full, what those lines leave free shows the others. What stands beside the text
// in the prompt, such as the arguments of its call, need not be said twice: names that
// it holds count for nothing.
func (x *Excerpts) Shorten(text, beside string, n int, full bool) string {
	if len(text) <= n {
		return text
	}
	text = clean(text)
	var all, pieces []piece
	line := 0 // of those that are not empty
	var in imports
	for _, p := range lineSpans(text) {
		if p.from == p.to || len(all) >= maxKeys {
			continue
		}
		line++
		p.from = afterLineNumber(text, p)
		brings := in.holds(text[p.from:p.to]) && len(all) > 0
		if brings && !full {
			continue
		}
		pieces = appendPieces(pieces[:0], text, p, line, 0, full || len(all) == 0)
		for i := range pieces {
			pieces[i].imports = brings
		}
		all = append(all, pieces...)
	}
	room := n - len(clip.OmittedNote(1_000_000)) - len("\n")
	var out strings.Builder
	kept, last := 0, -1
	chosen := x.choose(all, mentions(nil, beside), room, full)
	for _, i := range chosen {
		if last >= 0 {
			out.WriteByte('\n')
			if !all[i].follows(all[last].place) {
				out.WriteString(gap)
			}
		}
		out.WriteString(all[i].text)
		kept += utf8.RuneCountInString(all[i].text) + 1
		last = i
	}
	if len(chosen) == 0 {
		return clip.HeadAndTail(text, n)
	}
	out.WriteString("\n" + clip.OmittedNote(max(0, utf8.RuneCountInString(text)-kept)))
	return out.String()
}

// gap stands in front of a line that does not follow the one before it.
const gap = "… "

// choose takes the first line and then the best for their length that fit into room,
// in bytes; with full also lines that name nothing new.
func (x *Excerpts) choose(all []piece, beside []mention, room int, full bool) []int {
	covered := map[int32]bool{}
	cover := func(names []mention) {
		for _, m := range names {
			if id, ok := x.names.id[m.norm]; ok {
				covered[id] = true
			}
		}
	}
	cover(beside)
	density := func(i int) float32 {
		var v float32
		if all[i].imports {
			return 0
		}
		for _, m := range all[i].idents {
			if id, ok := x.names.id[m.norm]; ok && !covered[id] {
				v += x.names.weight[id]
			}
		}
		return v / float32(len(all[i].text)+len(gap)+1)
	}
	var chosen []int
	take := func(i int) {
		size := len(all[i].text) + len(gap) + 1
		if size > room {
			return
		}
		room -= size
		chosen = append(chosen, i)
		cover(all[i].idents)
	}
	if len(all) > 0 {
		take(0)
	}
	rest := make([]int, 0, len(all))
	for i := 1; i < len(all); i++ {
		rest = append(rest, i)
	}
	greedy(rest, density, func(i int, _ float32) bool {
		take(i)
		return room > 0
	})
	if !full {
		slices.Sort(chosen)
		return chosen
	}
	// What room is left shows the lines around those, and then the text from its
	// beginning: lines that name nothing new still say what the others are about.
	is := make([]bool, len(all)+1)
	for _, i := range chosen {
		is[i] = true
	}
	for _, near := range []bool{true, false} {
		for i := 1; i < len(all) && room > 0; i++ {
			if before := len(chosen); !is[i] && !all[i].imports && (!near || is[i-1] || is[i+1]) {
				take(i)
				is[i] = len(chosen) > before && !near
			}
		}
		for _, i := range chosen {
			is[i] = true
		}
	}
	for i := 1; i < len(all) && room > 0; i++ {
		if all[i].imports && !is[i] {
			take(i)
		}
	}
	slices.Sort(chosen)
	return chosen
}
