package summarize

import (
	"context"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Excerpts shortens outputs of a thread to the lines that a later step most likely
// needs. It is safe for concurrent reading.
type Excerpts struct {
	names  names
	wanted map[string]bool // stems of the requests that mark lines
}

// Excerpts learns from a thread which identifiers are in use; not all of them once ctx is done.
func (e *Extractive) Excerpts(ctx context.Context, messages []thread.Message) *Excerpts {
	x, in := &Excerpts{wanted: map[string]bool{}}, &Input{Messages: messages}
	of := e.reading(ctx)
	all, _ := readSpan(in, of)
	x.names.learn(effort.New(ctx, 0), in, all, of)
	held, results := map[string][]int{}, 0
	for i, f := range all {
		maps.Copy(x.wanted, stemsOf(f.user))
		if f.result == nil {
			continue
		}
		results++
		for _, p := range f.result.idLines {
			for w := range stems(p.text) {
				if x.wanted[w] {
					held[w] = append(held[w], i)
				}
			}
		}
	}
	maps.DeleteFunc(x.wanted, func(w string, _ bool) bool { return !marks(held[w], func(i int) int { return i }, results) })
	return x
}

// Shorten returns a text in at most about n bytes: its first line and the most valuable lines
// for their length, in their order, without white space and line numbers around them. Gaps are
// marked, and the last line says how much is missing. With full, other lines fill the
// remaining room. beside is text that stands in the prompt anyway, such as the arguments of
// the call: identifiers in it have no value.
func (x *Excerpts) Shorten(text, beside string, n int, full bool) string {
	if len(text) <= n {
		return text
	}
	text = scan.Clean(text)
	var all []piece
	line := 0 // of those that are not empty
	for _, p := range textLines(nil, text) {
		if line++; len(all) < maxIDLines {
			all = appendPieces(all, withoutLineNumber(text[p.From:p.To]), line, 0, full || len(all) == 0, false)
		}
	}
	chosen := x.choose(all, mentions(nil, beside), n-len(clip.OmittedNote(1_000_000))-len("\n"), full)
	if len(chosen) == 0 {
		return clip.HeadAndTail(text, n)
	}
	var out strings.Builder
	kept, last := 0, -1
	for _, i := range chosen {
		if last >= 0 && !all[i].follows(all[last].place) {
			out.WriteString(gap)
		}
		out.WriteString(all[i].text + "\n")
		kept, last = kept+utf8.RuneCountInString(all[i].text)+1, i
	}
	return out.String() + clip.OmittedNote(max(0, utf8.RuneCountInString(text)-kept))
}

// gap begins a line that does not follow the one before it.
const gap = "… "

// choose takes the first line and then the densest that fit into room, in bytes; with full also
// lines without new identifiers, from the beginning.
func (x *Excerpts) choose(all []piece, beside []mention, room int, full bool) []int {
	covered := map[int32]bool{}
	// names calls found with the identifiers that are not shown yet.
	names := func(in []mention, found func(id int32)) {
		for _, m := range in {
			if id, ok := x.names.id[m.norm]; ok && !covered[id] {
				found(id)
			}
		}
	}
	cover := func(id int32) { covered[id] = true }
	names(beside, cover)
	is := make([]bool, len(all)+1)
	cost := func(i int) int { return len(all[i].text) + len(gap) + 1 }
	take := func(i int) {
		if cost(i) <= room && !is[i] {
			room -= cost(i)
			is[i] = true
			names(all[i].idents, cover)
		}
	}
	rest := make([]int, len(all))
	for i := range rest {
		rest[i] = i
	}
	if len(all) > 0 {
		take(0)
		rest = rest[1:]
	}
	worth := make([]float32, len(all)) // of lines that the requests want collected
	for i := 0; i < len(all) && len(x.wanted) > 0; i++ {
		for w := range stems(all[i].text) {
			if x.wanted[w] {
				worth[i] = 1
			}
		}
	}
	density := func(i int) float32 {
		v := worth[i]
		names(all[i].idents, func(id int32) { v += x.names.weight[id] })
		return v / float32(cost(i))
	}
	greedy(rest, density, func(i int, _ float32) bool {
		take(i)
		return room > 0
	})
	// Lines that name nothing new still say what the others are about.
	for i := 1; i < len(all) && room > 0 && full; i++ {
		take(i)
	}
	var chosen []int
	for i := range all {
		if is[i] {
			chosen = append(chosen, i)
		}
	}
	return chosen
}
