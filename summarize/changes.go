package summarize

import (
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
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
		if c.from != "" && len(c.from)+len(c.to) <= 2*maxOneChange {
			e.from, e.to = c.from, c.to
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

// addEdits makes candidates of the edits.
func (b *builder) addEdits() {
	for _, key := range b.edited {
		e := b.edits[key]
		text := e.text(key.path)
		b.Changes = append(b.Changes, summary.Item{Text: text, Turn: key.turn, Sources: e.sources})
		b.entry(secChange, e.at, 2.5*b.age(e.at), mentions(nil, text))
	}
}

// text says what was done to a file.
func (e *edits) text(path string) string {
	s := e.op + " " + lastParts(path)
	if e.note != "" {
		s += ", " + e.note
	}
	switch {
	case e.calls == 1 && e.from != "" && len(e.defines) == 0:
		s += ": " + e.from + " → " + e.to
	case len(e.defines) > 0:
		s += ": " + firstFew(e.defines)
	}
	if len(e.dropped) > 0 {
		s += " | without: " + firstFew(e.dropped)
	}
	return s
}

// putIn is the set of the lines that a call puts into a file.
func (c *callFacts) putIn() map[string]bool {
	lines := make(map[string]bool, len(c.changed))
	for n := range c.changed {
		lines[c.changed[n].text] = true
	}
	return lines
}

// onlyLine returns the line that a text has lost and the one in its place, if that is all that
// differs from another.
func onlyLine(old, text string) (before, after string) {
	a, b := trimmedLines(old), trimmedLines(text)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) != 1 || len(b) != 1 {
		return "", ""
	}
	return a[0], b[0]
}

// trimmedLines are the lines of a text that are not empty, without the space around them.
func trimmedLines(s string) (all []string) {
	for _, p := range scan.Lines(s) {
		if p.From < p.To {
			all = append(all, s[p.From:p.To])
		}
	}
	return all
}
