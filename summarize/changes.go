package summarize

import (
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// editKey names what was changed: a file, in a turn.
type editKey struct {
	turn int
	path string
}

// edits is what the edits of a file in one turn did to it.
type edits struct {
	op             string // created, edited or deleted
	note           string
	added, removed int // lines
	defines        []string
	from, to       string // of a change of one short line
	calls          int
	at             int
	sources        []thread.ID
}

const (
	maxDefines   = 5   // definitions told of one file in one turn
	maxOneChange = 110 // bytes of a line that is told before and after
)

// edit notes what a call that succeeded changed. i is the position of its result.
func (b *builder) edit(i int, asked *thread.Message, c *callFacts) {
	for _, op := range c.files {
		if op.op == "read" {
			continue
		}
		key := editKey{asked.Turn, op.path}
		e := b.edits[key]
		if e == nil {
			e = &edits{op: op.op}
			if b.edits == nil {
				b.edits = map[editKey]*edits{}
			}
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
		if len(c.files) > 1 {
			continue // the lines are of all of them
		}
		e.added, e.removed = e.added+c.added, e.removed+c.taken
		for _, text := range c.defines {
			if !slices.Contains(c.removed, text) && !slices.Contains(e.defines, text) {
				e.defines = append(e.defines, text)
			}
		}
		if c.before != "" && len(c.before)+len(c.after) <= 2*maxOneChange {
			e.from, e.to = c.before, c.after
		}
	}
}

// changed turns the edits into candidates.
func (b *builder) changed() {
	for _, key := range b.edited {
		e := b.edits[key]
		var s strings.Builder
		s.WriteString(e.op + " " + lastParts(key.path))
		if e.note != "" {
			s.WriteString(", " + e.note)
		}
		switch {
		case e.added > 0 && e.removed > 0:
			s.WriteString(" (+" + strconv.Itoa(e.added) + " −" + strconv.Itoa(e.removed) + " lines)")
		case e.added > 0:
			s.WriteString(" (+" + strconv.Itoa(e.added) + " lines)")
		case e.removed > 0:
			s.WriteString(" (−" + strconv.Itoa(e.removed) + " lines)")
		}
		switch {
		case e.calls == 1 && e.from != "" && len(e.defines) == 0:
			s.WriteString(": " + e.from + " → " + e.to)
		case len(e.defines) > 0:
			s.WriteString(": " + strings.Join(e.defines[:min(len(e.defines), maxDefines)], " ; "))
			if more := len(e.defines) - maxDefines; more > 0 {
				s.WriteString(" ; … " + strconv.Itoa(more) + " more")
			}
		}
		text := s.String()
		b.changes = append(b.changes, summary.Item{Text: text, Turn: key.turn, Sources: e.sources})
		b.add(candidate{section: secChange, entry: len(b.changes) - 1, piece: -1, at: e.at, base: 2.5 * b.age(e.at)}, mentions(nil, text))
	}
}
