package summarize

import (
	"strings"

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
	op      string // created, edited or deleted
	note    string
	calls   int
	at      int // the position of the last result
	sources []thread.ID
	// from and to are the line before and after, of a change of one short line.
	from, to string
}

// maxOneChange is the length, in bytes, of a line that is shown before and after.
const maxOneChange = 110

// recordEdit notes what a call changed in files.
func (b *builder) recordEdit(x *exchange, files []shell.FileOp) {
	for _, op := range files {
		if op.Op == "read" {
			continue
		}
		key := editKey{x.asked.Turn, op.Path}
		e := b.edits[key]
		if e == nil {
			e = &edits{op: op.Op}
			b.edits[key] = e
			b.edited = append(b.edited, key)
		}
		if op.Op == "deleted" || e.op == "deleted" {
			e.op = op.Op
		}
		e.at, e.calls, e.sources = x.at, e.calls+1, append(e.sources, x.asked.ID)
		switch {
		case strings.HasPrefix(op.Note, "moved "):
			e.note = op.Note
		case op.Note == shell.Restored: // what the turn had changed is gone
			e.note, e.from = op.Note, ""
		case e.note == shell.Restored:
			e.note = ""
		}
		if len(files) > 1 {
			continue // nobody knows which line belongs to which
		}
		if c := x.call; c.from != "" && len(c.from)+len(c.to) <= 2*maxOneChange {
			e.from, e.to = c.from, c.to
		}
	}
}

// addEdits makes candidates of the edits.
func (b *builder) addEdits() {
	for _, key := range b.edited {
		e := b.edits[key]
		text := e.text(key.path)
		b.Changes = append(b.Changes, summary.Item{Text: text, Turn: key.turn, Sources: e.sources})
		b.entry(secChange, e.at, 1.75, mentions(nil, text))
	}
}

// text says what was done to a file.
func (e *edits) text(path string) string {
	s := e.op + " " + lastParts(path)
	if e.note != "" {
		s += ", " + e.note
	}
	if e.calls == 1 && e.from != "" {
		s += ": " + e.from + " → " + e.to
	}
	return s
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
	for _, p := range textLines(nil, s) {
		all = append(all, s[p.From:p.To])
	}
	return all
}
