package summarize

import (
	"slices"
	"strconv"
	"strings"

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
