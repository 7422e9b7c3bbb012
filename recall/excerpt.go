package recall

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// line is a line of a text, without its newline.
type line struct {
	from, to int
	weight   float64 // of the terms that it holds, each counted once
	match    int     // where the heaviest of them stands
	heaviest float64
}

// phraseWeight puts a line that holds a phrase as it was asked for before all
// lines that only hold words.
const phraseWeight = 1000

// excerpt returns the lines around the best match, at most about length bytes,
// with the number of the first and of all lines.
func (x *Index) excerpt(text string, marks map[int32]float64, phrases []string, length int) (string, int, int) {
	lines := split(text)
	x.mark(text, lines, marks)
	for _, p := range phrases {
		if at := indexFold(text, p); at >= 0 {
			l := &lines[lineAt(lines, at)]
			l.weight += phraseWeight
			if l.heaviest < phraseWeight {
				l.heaviest, l.match = phraseWeight, at
			}
		}
	}
	best := 0
	for i := range lines {
		if lines[i].to-lines[i].from > length {
			// It holds many words because it is long, and only a part can be shown.
			lines[i].weight /= 2
		}
		if lines[i].weight > lines[best].weight {
			best = i
		}
	}
	l := lines[best]
	if l.to-l.from > length {
		return part(text, l, length), best + 1, len(lines)
	}
	first, last := best, best
	for size := l.to - l.from; ; {
		grown := false
		// Below before above: what follows a match says more than what leads to it.
		if n := last + 1; n < len(lines) && size+1+lines[n].to-lines[n].from <= length {
			last, grown = n, true
			size += 1 + lines[n].to - lines[n].from
		}
		if n := first - 1; n >= 0 && size+1+lines[n].to-lines[n].from <= length {
			first, grown = n, true
			size += 1 + lines[n].to - lines[n].from
		}
		if !grown {
			return text[lines[first].from:lines[last].to], first + 1, len(lines)
		}
	}
}

// mark weighs the lines by the terms that they hold.
func (x *Index) mark(text string, lines []line, marks map[int32]float64) {
	if len(marks) == 0 {
		return
	}
	var sc scanner
	at := 0
	seen := map[int32]int{} // the last line that a term was counted in, plus one
	sc.scan(text, func(token []byte, _ grain, from, _ int) {
		id, known := x.terms[string(token)]
		if !known {
			return
		}
		weight, asked := marks[id]
		if !asked {
			return
		}
		for from > lines[at].to {
			at++
		}
		if seen[id] == at+1 {
			return
		}
		seen[id] = at + 1
		l := &lines[at]
		l.weight += weight
		if weight > l.heaviest {
			l.heaviest, l.match = weight, from
		}
	})
}

func split(text string) []line {
	lines := make([]line, 0, 1+strings.Count(text, "\n"))
	from := 0
	for {
		n := strings.IndexByte(text[from:], '\n')
		if n < 0 {
			return append(lines, line{from: from, to: len(text), match: from})
		}
		lines = append(lines, line{from: from, to: from + n, match: from})
		from += n + 1
	}
}

func lineAt(lines []line, at int) int {
	for i := range lines {
		if at <= lines[i].to {
			return i
		}
	}
	return len(lines) - 1
}

// part cuts a long line around its match, with an ellipsis where it goes on.
func part(text string, l line, length int) string {
	from := l.from + clip.Boundary(text[l.from:l.to], l.match-l.from-length/3)
	to := from + clip.Boundary(text[from:l.to], length)
	out := text[from:to]
	if from > l.from {
		out = "…" + out
	}
	if to < l.to {
		out += "…"
	}
	return out
}
