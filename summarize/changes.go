package summarize

import (
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// editKey names what was changed: a file, in a turn.
type editKey struct {
	turn int
	path string
}

// edits is what the edits of a file in one turn did to it.
type edits struct {
	op       string // created, edited or deleted
	note     string
	defines  []string
	dropped  []string // definitions that it took out
	from, to string   // of a change of one short line
	calls    int
	at       int
	sources  []thread.ID
}

const (
	maxDefines   = 5   // definitions told of one file in one turn
	maxOneChange = 110 // bytes of a line that is told before and after
)

// edit notes what a call that succeeded changed: the files as they were touched. i
// is the position of its result.
func (b *builder) edit(i int, asked *thread.Message, c *callFacts, files []fileOp) {
	for _, op := range files {
		if op.op == "read" {
			continue
		}
		key := editKey{asked.Turn, op.path}
		e := b.edits[key]
		if e == nil {
			e = &edits{op: op.op}
			b.edits[key] = e
			b.edited = append(b.edited, key)
		}
		if op.op == "deleted" || e.op == "deleted" {
			e.op = op.op
		}
		e.at, e.calls = i, e.calls+1
		if strings.HasPrefix(op.note, "moved ") {
			e.note = op.note
		}
		e.sources = append(e.sources, asked.ID)
		if len(files) > 1 {
			continue // the lines are of all of them
		}
		for _, text := range c.defines {
			if !slices.Contains(c.dropped, text) && !slices.Contains(e.defines, text) {
				e.defines = append(e.defines, text)
			}
		}
		for _, text := range c.dropped {
			if !slices.Contains(c.defines, text) && !slices.Contains(e.dropped, text) {
				e.dropped = append(e.dropped, text)
			}
		}
		if before, after := c.oneLine(); before != "" && len(before)+len(after) <= 2*maxOneChange {
			e.from, e.to = before, after
		}
	}
}

// few lists the first of some definitions, and says how many more there are.
func few(defined []string) string {
	s := strings.Join(defined[:min(len(defined), maxDefines)], " ; ")
	if more := len(defined) - maxDefines; more > 0 {
		s += " ; … " + strconv.Itoa(more) + " more"
	}
	return s
}

// change is an entry of the story: what was done to a file in a turn, or a hunk of it.
type change struct {
	summary.Item
	key   editKey
	edits *edits // nil for a hunk
}

// changed turns the edits into candidates.
func (b *builder) changed() {
	for _, key := range b.edited {
		e := b.edits[key]
		text := e.text(key.path, "")
		b.changes = append(b.changes, change{summary.Item{Text: text, Turn: key.turn, Sources: e.sources}, key, e})
		b.entry(secChange, e.at, 2.5*b.age(e.at), mentions(nil, text))
	}
}

// text tells what was done to a file, without the definitions and lines that stand
// in what is shown beside it.
func (e *edits) text(path, shown string) string {
	var s strings.Builder
	s.WriteString(e.op + " " + lastParts(path))
	if e.note != "" {
		s.WriteString(", " + e.note)
	}
	news := func(all []string, mark string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(line string) bool { return strings.Contains(shown, "\n"+mark+line) })
	}
	defines, dropped := news(e.defines, "+ "), news(e.dropped, "- ")
	switch {
	case e.calls == 1 && e.from != "" && len(e.defines) == 0:
		if shown == "" {
			s.WriteString(": " + e.from + " → " + e.to)
		}
	case len(defines) > 0:
		s.WriteString(": " + few(defines))
	}
	if len(dropped) > 0 {
		s.WriteString(" | without: " + few(dropped))
	}
	return s.String()
}

// tell lists the changes that were chosen; what a hunk shows is not said of its file
// again.
func (p *pool) tell(chosen []int) []summary.Item {
	slices.Sort(chosen)
	shown := map[editKey]string{}
	for _, n := range chosen {
		if c := &p.changes[n]; c.edits == nil && c.key.path != "" {
			shown[c.key] += "\n" + c.Text
		}
	}
	var out []summary.Item
	for _, n := range chosen {
		c := p.changes[n]
		if c.edits != nil && shown[c.key] != "" {
			c.Text = c.edits.text(c.key.path, shown[c.key])
			if c.Text == "edited "+lastParts(c.key.path) {
				continue // the hunk says so
			}
		}
		out = append(out, c.Item)
	}
	return out
}

// hunk is a run of lines that an edit took out of a file, and what stands in their
// place.
type hunk struct{ minus, plus []string }

const (
	maxHunkLines = 12  // lines of one hunk that are told together
	maxHunkBytes = 600 // and how long they may be
	maxMinus     = 3   // lines told of what was taken out
	maxHunkLine  = 160 // bytes told of one line
	// maxCompared bounds the lines of a text that are compared one by one.
	maxCompared = 150
	// leastHunk is how long what an edit puts in must be to be told, in bytes.
	leastHunk = 12
	// maxHunks bounds what is taken from one call.
	maxHunks = 24
)

// hunksOf compares the old text of an edit with the new one.
func hunksOf(before, after string) []hunk {
	a, b := textLines(before), textLines(after)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 || len(a) > maxCompared || len(b) > maxCompared {
		return splitHunk(nil, hunk{a, b})
	}
	// The longest common subsequence, from the end.
	length := make([][]int16, len(a)+1)
	for i := range length {
		length[i] = make([]int16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
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
		case i < len(a) && j < len(b) && a[i] == b[j]:
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

// textLines splits a text into its lines; none of an empty one.
func textLines(s string) []string {
	if s = strings.Trim(s, "\n"); s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// splitHunk adds a hunk in pieces that are short enough, parted at blank lines where
// there are any.
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

// text is how a hunk is told.
func (h hunk) text(path string) string {
	var s strings.Builder
	s.WriteString(lastParts(path) + ":")
	indent, first := "", true // what all lines begin with
	for _, line := range slices.Concat(h.minus, h.plus) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lead := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if first {
			indent, first = lead, false
		}
		for !strings.HasPrefix(lead, indent) {
			indent = indent[:len(indent)-1]
		}
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

// wrote is a hunk of the span.
type wrote struct {
	hunk
	path string
	turn int
	at   int // position of the call's result
	from thread.ID
	gone bool // a later change took some of it out again
}

// standing are the hunks of a file that no later change touched, all of them and by
// the lines that they put in.
type standing struct {
	all    []int
	byLine map[string][]int
}

// write notes the hunks of a call that succeeded.
func (b *builder) write(i int, asked *thread.Message, c *callFacts) {
	path := c.path()
	if path == "" || len(c.hunks) == 0 {
		return
	}
	path = b.filed(path)
	file := b.standing[path]
	if file == nil {
		file = &standing{byLine: map[string][]int{}}
		b.standing[path] = file
	}
	for _, h := range c.hunks {
		n := len(b.wrote)
		b.wrote = append(b.wrote, wrote{hunk: h, path: path, turn: asked.Turn, at: i, from: asked.ID})
		file.all = append(file.all, n)
		for _, line := range h.plus {
			line = strings.TrimSpace(line)
			file.byLine[line] = append(file.byLine[line], n)
		}
	}
}

// unwrite marks the hunks of which a call took lines out again. What a command did
// to a file, and a file that is written anew, leave none.
func (b *builder) unwrite(c *callFacts) {
	for _, op := range c.files {
		if op.op == "read" {
			continue
		}
		path := b.filed(op.path)
		file := b.standing[path]
		if file == nil {
			continue
		}
		if c.class == toolpolicy.Shell || op.op != "edited" {
			for _, n := range file.all {
				b.wrote[n].gone = true
			}
			delete(b.standing, path)
			continue
		}
		for _, line := range c.taken() {
			for _, n := range file.byLine[line] {
				b.wrote[n].gone = true
			}
			delete(file.byLine, line)
		}
	}
}

// putIn is the set of the lines that a call puts into a file.
func (c *callFacts) putIn() map[string]bool {
	lines := make(map[string]bool, len(c.changed))
	for n := range c.changed {
		lines[c.changed[n].text] = true
	}
	return lines
}

// taken are the lines that an edit took out and did not put in again.
func (c *callFacts) taken() []string {
	removed, stays := c.removed, c.putIn()
	if len(c.hunks) > 0 && len(c.hunks) < maxHunks { // they say it more closely
		removed = nil
		for _, h := range c.hunks {
			for _, line := range h.minus {
				removed = append(removed, strings.TrimSpace(line))
			}
			for _, line := range h.plus {
				stays[strings.TrimSpace(line)] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(removed), func(line string) bool { return stays[line] })
}

// What a hunk is worth by itself: of an edit, of a file that was made whole, of lines
// that only bring names in or draw.
const (
	editedWorth = 0.7
	madeWorth   = 0.2
	importWorth = 0.05
)

// imports reports whether a hunk holds nothing but imports.
func (h hunk) imports() bool {
	in := imports{open: true} // the edit may be inside of a list
	return !slices.ContainsFunc(h.plus, func(line string) bool {
		line = strings.TrimSpace(line)
		return line != "" && !in.holds(line)
	})
}

// diagram reports whether a hunk mostly draws something: Mermaid is the one that is
// written into documents.
func (h hunk) diagram() bool {
	n := 0
	for _, line := range h.plus {
		line = strings.TrimSpace(line)
		first := firstWord(line)
		if strings.Contains(line, "->>") || strings.Contains(line, "-->") || diagramWords[first] {
			n++
		}
	}
	return 2*n > len(h.plus)
}

// diagramWords open the other lines of a Mermaid diagram.
var diagramWords = set("```mermaid sequenceDiagram stateDiagram-v2 flowchart graph participant actor Note loop alt opt end")

// written turns the hunks that still stand into candidates.
func (b *builder) written() {
	for n := range b.wrote {
		w := &b.wrote[n]
		if w.gone || len(strings.TrimSpace(strings.Join(w.plus, ""))) < leastHunk {
			continue
		}
		text := w.text(w.path)
		worth := float32(editedWorth)
		switch {
		case w.imports(), w.diagram():
			worth = importWorth
		case len(w.minus) == 0 && len(w.plus) >= maxHunkLines:
			worth = madeWorth
		}
		b.changes = append(b.changes, change{Item: summary.Item{Text: text, Turn: w.turn, Sources: []thread.ID{w.from}}, key: editKey{w.turn, w.path}})
		b.entry(secChange, w.at, worth*b.age(w.at), mentions(nil, text)).terms = b.terms.add(w.at, termsOf(text))
	}
}
