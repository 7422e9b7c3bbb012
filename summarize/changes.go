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
