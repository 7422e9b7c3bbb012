package summarize

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// editKey names what was changed: a file, in a turn.
type editKey struct {
	turn int
	path string
}

// edits sums up the edits of one file in one turn.
type edits struct {
	op       string // created, edited or deleted
	note     string
	defines  []string
	dropped  []string        // definitions that are gone
	listed   map[string]bool // "+" and "-" before each of both
	from, to string          // the line before and after, of a change of one short line
	calls    int
	at       int
	sources  []thread.ID
}

const (
	maxDefines   = 5   // definitions shown of one file in one turn
	maxOneChange = 110 // bytes of a line that is shown before and after
)

// recordEdit notes what a successful call changed in files. i is the position of its result.
func (b *builder) recordEdit(i int, asked *thread.Message, c *callFacts, files []shell.FileOp) {
	for _, op := range files {
		if op.Op == "read" {
			continue
		}
		key := editKey{asked.Turn, op.Path}
		e := b.edits[key]
		if e == nil {
			e = &edits{op: op.Op, listed: map[string]bool{}}
			b.edits[key] = e
			b.edited = append(b.edited, key)
		}
		if op.Op == "deleted" || e.op == "deleted" {
			e.op = op.Op
		}
		e.at, e.calls = i, e.calls+1
		switch {
		case strings.HasPrefix(op.Note, "moved "):
			e.note = op.Note
		case op.Note == shell.Restored: // what the turn had changed is gone
			e.note, e.defines, e.dropped, e.listed, e.from, e.to = op.Note, nil, nil, map[string]bool{}, "", ""
		case e.note == shell.Restored:
			e.note = ""
		}
		e.sources = append(e.sources, asked.ID)
		if len(files) > 1 {
			continue // nobody knows which line belongs to which
		}
		news := func(list *[]string, mark string, texts, others []string) {
			for _, text := range texts {
				if !slices.Contains(others, text) && !e.listed[mark+text] {
					e.listed[mark+text], *list = true, append(*list, text)
				}
			}
		}
		news(&e.defines, "+", c.defines, c.dropped)
		news(&e.dropped, "-", c.dropped, c.defines)
		if before, after := c.oneLine(); before != "" && len(before)+len(after) <= 2*maxOneChange {
			e.from, e.to = before, after
		}
	}
}

// firstFew lists the first definitions and counts the others.
func firstFew(defined []string) string {
	s := strings.Join(defined[:min(len(defined), maxDefines)], " ; ")
	if more := len(defined) - maxDefines; more > 0 {
		s += " ; … " + strconv.Itoa(more) + " more"
	}
	return s
}

// change is an entry of the story: the edits of a file in a turn, or one hunk of them.
type change struct {
	summary.Item
	key   editKey
	edits *edits // nil for a hunk
}

// addEdits makes candidates of the edits.
func (b *builder) addEdits() {
	for _, key := range b.edited {
		e := b.edits[key]
		text := e.text(key.path, nil)
		b.changes = append(b.changes, change{summary.Item{Text: text, Turn: key.turn, Sources: e.sources}, key, e})
		b.entry(secChange, e.at, 2.5*b.age(e.at), mentions(nil, text))
	}
}

// text says what was done to a file, without the definitions in the hunks that are shown
// beside it, of which the lines are given in order of the alphabet.
func (e *edits) text(path string, shown []string) string {
	var s strings.Builder
	s.WriteString(e.op + " " + lastParts(path))
	if e.note != "" {
		s.WriteString(", " + e.note)
	}
	news := func(all []string, mark string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(line string) bool {
			at, _ := slices.BinarySearch(shown, mark+line)
			return at < len(shown) && strings.HasPrefix(shown[at], mark+line)
		})
	}
	defines, dropped := news(e.defines, "+ "), news(e.dropped, "- ")
	switch {
	case e.calls == 1 && e.from != "" && len(e.defines) == 0:
		if len(shown) == 0 {
			s.WriteString(": " + e.from + " → " + e.to)
		}
	case len(defines) > 0:
		s.WriteString(": " + firstFew(defines))
	}
	if len(dropped) > 0 {
		s.WriteString(" | without: " + firstFew(dropped))
	}
	return s.String()
}

// changeItems lists the chosen changes. What a hunk shows is not repeated in the entry of its
// file.
func (p *pool) changeItems(chosen []int) []summary.Item {
	slices.Sort(chosen)
	shown := map[editKey][]string{} // lines
	for _, n := range chosen {
		if c := &p.changes[n]; c.edits == nil && c.key.path != "" {
			shown[c.key] = append(shown[c.key], strings.Split(c.Text, "\n")...)
		}
	}
	for _, lines := range shown {
		slices.Sort(lines)
	}
	var out []summary.Item
	for _, n := range chosen {
		c := p.changes[n]
		if c.edits != nil && len(shown[c.key]) > 0 {
			c.Text = c.edits.text(c.key.path, shown[c.key])
			if c.Text == "edited "+lastParts(c.key.path) {
				continue // the hunk shows it
			}
		}
		out = append(out, c.Item)
	}
	return out
}

// fileHunk is a hunk that the span put into a file.
type fileHunk struct {
	hunk
	path string
	turn int
	at   int // position of the call's result
	from thread.ID
	gone bool // a later change took a line of it out again
}

// newestHunks are the hunks of a file that no later change touched.
type newestHunks struct {
	all    []int
	byLine map[string][]int
}

// recordHunks notes the hunks of a call that succeeded.
func (b *builder) recordHunks(i int, asked *thread.Message, c *callFacts) {
	path := c.path()
	if path == "" || len(c.hunks) == 0 {
		return
	}
	path = b.ledgerPath(path)
	file := b.newest[path]
	if file == nil {
		file = &newestHunks{byLine: map[string][]int{}}
		b.newest[path] = file
	}
	for _, h := range c.hunks {
		n := len(b.hunks)
		b.hunks = append(b.hunks, fileHunk{hunk: h, path: path, turn: asked.Turn, at: i, from: asked.ID})
		file.all = append(file.all, n)
		for _, line := range h.plus {
			line = strings.TrimSpace(line)
			file.byLine[line] = append(file.byLine[line], n)
		}
	}
}

// dropHunks marks the hunks of which a call took lines out again. A command that changes a
// file, and writing it anew, drop all of its hunks.
func (b *builder) dropHunks(c *callFacts, files []shell.FileOp) {
	gone := sync.OnceValue(c.takenOut)
	for _, op := range files {
		if op.Op == "read" {
			continue
		}
		path := b.ledgerPath(op.Path)
		file := b.newest[path]
		if file == nil {
			continue
		}
		if c.Class == toolclass.Shell || op.Op != "edited" {
			for _, n := range file.all {
				b.hunks[n].gone = true
			}
			delete(b.newest, path)
			continue
		}
		for _, line := range gone() {
			for _, n := range file.byLine[line] {
				b.hunks[n].gone = true
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

// takenOut returns the lines that an edit removed and did not put in again.
func (c *callFacts) takenOut() []string {
	removed, stays := c.removed, c.putIn()
	if len(c.hunks) > 0 && len(c.hunks) < maxHunks { // they are more exact
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

// The base value of a hunk: of an edit, of a new file, of imports, a diagram or ticks.
const (
	editedWorth = 0.7
	madeWorth   = 0.2
	importWorth = 0.05
)

// addHunks makes candidates of the hunks that still stand.
func (b *builder) addHunks() {
	for n := range b.hunks {
		w := &b.hunks[n]
		if !b.effort.Live(messageEffort) {
			return
		}
		if w.gone || len(strings.TrimSpace(strings.Join(w.plus, ""))) < leastHunk {
			continue
		}
		text := w.text(w.path)
		worth := float32(editedWorth)
		switch {
		case w.imports(), w.diagram(), w.ticks():
			worth = importWorth
		case len(w.minus) == 0 && len(w.plus) >= maxHunkLines:
			worth = madeWorth
		}
		b.changes = append(b.changes, change{Item: summary.Item{Text: text, Turn: w.turn, Sources: []thread.ID{w.from}}, key: editKey{w.turn, w.path}})
		b.entry(secChange, w.at, worth*b.age(w.at), mentions(nil, text)).terms = b.terms.add(w.at, termsOf(text))
	}
}
