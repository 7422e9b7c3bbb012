package summarize

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Excerpts shortens outputs of a thread to the lines that a later step most likely
// needs. It is safe for concurrent reading.
type Excerpts struct{ names names }

// Excerpts learns from a thread which identifiers are in use; not all of them once ctx is done.
func (e *Extractive) Excerpts(ctx context.Context, messages []thread.Message) *Excerpts {
	x, in := &Excerpts{}, &Input{Messages: messages}
	of := e.reading(ctx)
	all, _ := readSpan(in, of)
	x.names.learn(effort.New(ctx, 0), in, all, of)
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
	for _, p := range scan.Lines(text) {
		if len(all) >= maxIDLines {
			break
		}
		if p.From == p.To {
			continue
		}
		line++
		p.From = afterLineNumber(text, p)
		all = appendPieces(all, text, p, line, 0, full || len(all) == 0)
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

// gap begins a line that does not follow the one before it.
const gap = "… "

// choose takes the first line and then the densest that fit into room, in bytes; with full also
// lines without new identifiers.
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
	if full {
		// The rest of the room shows the lines around those, then the others from the
		// beginning: lines that name nothing new still say what the others are about.
		is := make([]bool, len(all)+1)
		for _, wanted := range []func(i int) bool{
			func(i int) bool { return is[i-1] || is[i+1] },
			func(int) bool { return true },
		} {
			for _, i := range chosen {
				is[i] = true
			}
			for i := 1; i < len(all) && room > 0; i++ {
				if !is[i] && wanted(i) {
					take(i)
				}
			}
		}
	}
	slices.Sort(chosen)
	return chosen
}
