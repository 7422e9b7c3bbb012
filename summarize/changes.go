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
		if c.before != "" && len(c.before)+len(c.after) <= 2*maxOneChange {
			e.from, e.to = c.before, c.after
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
		case e.calls == 1 && e.from != "" && len(e.defines) == 0:
			s.WriteString(": " + e.from + " → " + e.to)
		case len(e.defines) > 0:
			s.WriteString(": " + few(e.defines))
		}
		if len(e.dropped) > 0 {
			s.WriteString(" | without: " + few(e.dropped))
		}
		text := s.String()
		b.changes = append(b.changes, summary.Item{Text: text, Turn: key.turn, Sources: e.sources})
		b.add(candidate{section: secChange, entry: len(b.changes) - 1, piece: -1, at: e.at, base: 2.5 * b.age(e.at)}, mentions(nil, text))
	}
}
