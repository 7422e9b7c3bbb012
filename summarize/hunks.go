package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// hunk is a run of lines that an edit removed from a file, and the lines in their place.
type hunk struct{ minus, plus []string }

const (
	maxHunkLines = 12  // added lines of one hunk; a longer one is split
	maxHunkBytes = 600 // and their bytes
	maxMinus     = 3   // removed lines that are shown
	maxHunkLine  = 160 // bytes shown of one line
	// maxCompared is how many lines a text may have to be compared line by line.
	maxCompared = 150
	// leastHunk is the shortest added text that is shown, in bytes.
	leastHunk = 12
	// maxHunks bounds the hunks of one call.
	maxHunks = 24
)

// mostLines bounds the lines of a text of so many bytes that is compared: its lines are kept.
func mostLines(bytes int) int { return maxChanged + bytes/24 }

// hunksOf compares the old text of an edit with the new one. What changes in very many tiny lines is
// not known.
func hunksOf(before, after string) []hunk {
	for _, text := range [...]string{before, after} {
		if strings.Count(text, "\n") > mostLines(len(text)) {
			return nil
		}
	}
	a, b := textLines(before), textLines(after)
	for len(a) > 0 && len(b) > 0 && alike(a[0], b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && alike(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 || len(a) > maxCompared || len(b) > maxCompared {
		return splitHunk(nil, hunk{a, b})
	}
	bare := func(lines []string) []string {
		out := make([]string, len(lines))
		for i, line := range lines {
			out[i] = strings.TrimSpace(line)
		}
		return out
	}
	bareA, bareB := bare(a), bare(b)
	// The longest common subsequence, from the end.
	length := make([][]int16, len(a)+1)
	for i := range length {
		length[i] = make([]int16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if bareA[i] == bareB[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var out []hunk
	var h hunk
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && bareA[i] == bareB[j]:
			out, h = splitHunk(out, h), hunk{}
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && length[i+1][j] >= length[i][j+1]:
			h.minus = append(h.minus, a[i])
			i++
		default:
			h.plus = append(h.plus, b[j])
			j++
		}
	}
	return splitHunk(out, h)
}

// alike reports whether two lines differ at most in their indent: a block that was moved in
// or out is no news.
func alike(a, b string) bool { return a == b || strings.TrimSpace(a) == strings.TrimSpace(b) }

// textLines splits a text into its lines; none of an empty one.
func textLines(s string) []string {
	if s = strings.Trim(s, "\n"); s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// splitHunk appends a hunk, split at blank lines if it is too long.
func splitHunk(to []hunk, h hunk) []hunk {
	for len(h.plus) > 0 || len(h.minus) > 0 {
		if len(to) == maxHunks {
			return to
		}
		n, size, blank := 0, 0, -1
		for n < len(h.plus) && n < maxHunkLines && (n == 0 || size+len(h.plus[n]) <= maxHunkBytes) {
			if strings.TrimSpace(h.plus[n]) == "" {
				blank = n
			}
			size += len(h.plus[n])
			n++
		}
		if n < len(h.plus) && blank > 2 {
			n = blank + 1
		}
		to = append(to, hunk{h.minus, h.plus[:n]})
		h = hunk{nil, h.plus[n:]}
	}
	return to
}

// text shows a hunk as a diff, without the common indent.
func (h hunk) text(path string) string {
	var s strings.Builder
	s.WriteString(lastParts(path) + ":")
	indent, first := "", true // the white space that all lines begin with
	for _, line := range slices.Concat(h.minus, h.plus) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lead := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if first {
			indent, first = lead, false
		}
		n := 0
		for n < len(lead) && n < len(indent) && lead[n] == indent[n] {
			n++
		}
		indent = indent[:n]
	}
	write := func(mark string, lines []string) {
		for _, line := range lines {
			if strings.TrimSpace(line) != "" {
				line = strings.TrimRight(strings.TrimPrefix(line, indent), " \t\r")
				text := strings.TrimLeft(line, " \t")
				s.WriteString("\n" + mark + line[:len(line)-len(text)] + clip.Brief(text, maxHunkLine))
			}
		}
	}
	write("- ", h.minus[:min(len(h.minus), maxMinus)])
	if len(h.minus) > maxMinus {
		s.WriteString("\n- …")
	}
	write("+ ", h.plus)
	return s.String()
}

// names reports whether a hunk changes a line with one of these names. Paths do not count.
func (h hunk) names(any []mention) bool {
	for _, line := range slices.Concat(h.minus, h.plus) {
		for _, m := range mentions(nil, line) {
			if m.kind != ident.Path && slices.ContainsFunc(any, func(x mention) bool { return x.norm == m.norm }) {
				return true
			}
		}
	}
	return false
}

// ticks reports whether a hunk only marks items of a list as done, or as not done.
func (h hunk) ticks() bool {
	if len(h.plus) != len(h.minus) {
		return false
	}
	box := strings.NewReplacer("[x]", "[ ]", "[X]", "[ ]", "[~]", "[ ]", "[-]", "[ ]")
	for n, line := range h.plus {
		if !strings.Contains(line, "[") || box.Replace(line) != box.Replace(h.minus[n]) {
			return false
		}
	}
	return true
}

// imports reports whether a hunk adds nothing but imports.
func (h hunk) imports() bool {
	in := imports{open: true} // the edit may be inside of a list
	return !slices.ContainsFunc(h.plus, func(line string) bool {
		line = strings.TrimSpace(line)
		return line != "" && !in.holds(line)
	})
}

// diagram reports whether a hunk is mostly a Mermaid diagram.
func (h hunk) diagram() bool {
	n := 0
	for _, line := range h.plus {
		line = strings.TrimSpace(line)
		first := scan.FirstWord(line)
		if strings.Contains(line, "->>") || strings.Contains(line, "-->") || diagramWords[first] {
			n++
		}
	}
	return 2*n > len(h.plus)
}

// diagramWords open the other lines of a Mermaid diagram.
var diagramWords = scan.WordSet("```mermaid sequenceDiagram stateDiagram-v2 flowchart graph participant actor Note loop alt opt end")

// brief shows a hunk on one line.
func (h hunk) brief() string {
	from, to := h.ends()
	switch {
	case to == "":
		return "without: " + from
	case from == "":
		return "with: " + to
	}
	return from + " → " + to
}

// ends returns the first telling line that a hunk removed and the first that it added,
// shortened; each may be empty.
func (h hunk) ends() (before, after string) {
	first := func(lines []string) string {
		comment := ""
		for _, line := range lines {
			switch line = strings.TrimSpace(line); {
			case len(line) <= 2:
			case line[0] != '/' && line[0] != '#' && line[0] != '*':
				return clip.Brief(line, maxOneChange)
			case comment == "":
				comment = clip.Brief(line, maxOneChange)
			}
		}
		return comment
	}
	return first(h.minus), first(h.plus)
}
