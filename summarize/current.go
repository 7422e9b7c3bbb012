package summarize

import (
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// origin is something that is asked more than once: a file, or a call that is made
// again with the same arguments. What it said last is true now. A line of an
// earlier answer that is gone from it would pass for the present and mislead: it is
// not told at all.
type origin struct {
	path    string             // of a file; empty for a call
	answers [][]string         // lines that still hold, by answer, the oldest first
	at      map[string]current // where each of them stands
	groups  []int              // the groups of lines that stem from it
}

// current is where a line stands that still holds.
type current struct{ candidate, answer int }

// originKey names an origin: a file by its path, a call by its tool and input.
type originKey struct{ tool, input string }

func fileKey(path string) originKey { return originKey{input: path} }

// callKey names a call; not ok where its arguments are cut short, since it may be
// another one then.
func callKey(c *callFacts) (key originKey, ok bool) {
	return originKey{c.name, c.input}, c.input != "" && len(c.input) <= maxInput-4
}

// expect counts how often each origin is asked or changed. What comes up once needs
// no following.
func (b *builder) expect(f *facts) {
	for n := range f.calls {
		c := &f.calls[n]
		for _, op := range c.files {
			b.expected[fileKey(op.path)]++
		}
		if key, ok := callKey(c); ok && c.class != toolpolicy.Read {
			b.expected[key]++
		}
	}
}

// origin returns the origin of a key, a new one where there is none; nil where it
// comes up once.
func (b *builder) origin(key originKey) *origin {
	o := b.origins[key]
	if o == nil && b.expected[key] > 1 {
		o = &origin{at: map[string]current{}}
		if key.tool == "" {
			o.path = key.input
		}
		b.origins[key] = o
	}
	return o
}

// gone takes a line out of what may be said.
func (b *builder) gone(o *origin, line string) {
	at, ok := o.at[line]
	if !ok {
		return
	}
	delete(o.at, line)
	delete(b.seen, said{'t', line}) // a later answer may bring it again
	b.candidates[at.candidate].dead = true
}

// sweep takes out what a new answer of an origin has made out of date. Where the
// answer is whole, that is every line which it does not hold; of a part it is those
// between two lines that it holds and that stand as near to each other as before.
// Lines that it holds are taken out too where it says them itself.
func (b *builder) sweep(o *origin, lines []piece, whole, says bool) {
	if len(o.at) == 0 {
		return
	}
	where := make(map[string]int, len(lines))
	for n := range lines {
		if _, twice := where[lines[n].text]; twice {
			where[lines[n].text] = -1
		} else {
			where[lines[n].text] = n
		}
	}
	for _, k := range o.touched(where, whole) {
		answer := o.answers[k]
		anchor, last := -1, 0 // the line of the answer that is in the new one too, and its place there
		kept := answer[:0:0]
		from := 0 // where in kept the lines after the anchor begin
		for n, line := range answer {
			if at, holds := o.at[line]; !holds || at.answer != k {
				continue
			}
			place, known := where[line]
			if !known {
				if whole {
					b.gone(o, line)
				} else {
					kept = append(kept, line)
				}
				continue
			}
			if place >= 0 {
				if anchor >= 0 && place > last && place-last <= 2*(n-anchor)+nearby {
					for _, between := range kept[from:] {
						if _, still := where[between]; !still {
							b.gone(o, between)
						}
					}
				}
				anchor, last = n, place
			}
			if says {
				b.gone(o, line)
			} else {
				kept = append(kept, line)
			}
			from = len(kept)
		}
		o.answers[k] = kept
	}
}

// touched are the answers, the oldest first, that a new one may take lines from. Where it is a
// part, those are the ones that hold a line of it: a file that is read again and
// again has many others.
func (o *origin) touched(lines map[string]int, whole bool) []int {
	held := map[int]bool{}
	if whole {
		for _, at := range o.at {
			held[at.answer] = true
		}
	} else {
		for line := range lines {
			if at, ok := o.at[line]; ok {
				held[at.answer] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(held))
}

// nearby is how many lines two lines may have come further apart between two
// readings, beside twice their distance, that what stood between them counts as
// read again.
const nearby = 10

// keep notes the lines that were just added as candidates, from a position on.
func (b *builder) keep(o *origin, from int) {
	var lines []string
	for at := from; at < len(b.candidates); at++ {
		if c := &b.candidates[at]; c.section == secSnippet {
			o.at[c.text] = current{at, len(o.answers)}
			lines = append(lines, c.text)
		}
	}
	if len(lines) > 0 {
		o.answers = append(o.answers, lines)
		o.groups = append(o.groups, len(b.groups[secSnippet])-1)
	}
}

// change takes the lines out that a successful call took out of its files.
func (b *builder) change(c *callFacts) {
	b.unwrite(c)
	for _, op := range c.files {
		o := b.origins[fileKey(op.path)]
		if o == nil {
			continue
		}
		switch {
		case op.op == "deleted":
			if to, ok := strings.CutPrefix(op.note, "moved to "); ok {
				b.move(o, op.path, to)
			} else {
				b.drop(o)
			}
			delete(b.origins, fileKey(op.path))
		case op.op == "created" && c.class == toolpolicy.Shell:
			if !strings.HasPrefix(op.note, "moved from ") {
				b.sweep(o, nil, true, false) // whatever it holds now
			}
		case op.op == "created" && len(c.changed) < maxChanged:
			b.sweep(o, c.changed, true, true)
		case len(c.removed) > 0:
			stays := c.putIn()
			for _, line := range c.removed {
				if !stays[line] {
					b.gone(o, line)
				}
			}
		}
	}
}

// drop takes out all lines of a file that is no more.
func (b *builder) drop(o *origin) {
	for _, answer := range o.answers {
		for _, line := range answer {
			b.gone(o, line)
		}
	}
}

// move renames a file, and with it the lines that were read of it.
func (b *builder) move(o *origin, from, to string) {
	if old := b.origins[fileKey(to)]; old != nil {
		b.drop(old)
	}
	o.path = to
	for _, n := range o.groups {
		g := &b.groups[secSnippet][n]
		g.label = strings.Replace(g.label, from, to, 1)
		if g.path == from {
			g.path = to
		}
	}
	b.origins[fileKey(to)] = o
}

// answered adds the lines of a result and takes out those that it makes out of
// date.
func (b *builder) answered(i int, m *thread.Message, c *callFacts, r *resultFacts, class toolpolicy.Class, failed bool, base float32) {
	from := len(b.candidates)
	if c == nil {
		b.snippet(i, m, c, label(c, r.tool), r.keys, base)
		return
	}
	if !failed {
		b.change(c)
		if asked, ok := b.calls[c.id]; ok {
			b.write(i, &b.messages[asked.message], c)
		}
	}
	if class == toolpolicy.Edit || class == toolpolicy.Write {
		if failed {
			b.snippet(i, m, c, "failed "+c.name+" "+c.input, c.changed, changedBase)
		} else {
			b.snippet(i, m, c, c.name+" "+c.input, c.changed, changedBase)
			if o := b.origin(fileKey(c.path())); o != nil && o.path != "" {
				b.keep(o, from)
			}
		}
		from = len(b.candidates)
	}
	o, whole := b.asks(c, class, failed)
	if o != nil {
		b.sweep(o, r.keys, whole, true)
	}
	b.snippet(i, m, c, label(c, r.tool), r.keys, base)
	if o != nil {
		b.keep(o, from)
	}
}

// asks is the origin that a call asks, nil for none, and whether its answer is all
// that there is.
func (b *builder) asks(c *callFacts, class toolpolicy.Class, failed bool) (o *origin, whole bool) {
	switch class {
	case toolpolicy.Edit, toolpolicy.Write, toolpolicy.Agent, toolpolicy.Question:
		return nil, false
	case toolpolicy.Read:
		if path := c.path(); path != "" && !failed {
			return b.origin(fileKey(path)), false
		}
		return nil, false
	}
	if key, ok := callKey(c); ok {
		return b.origin(key), true
	}
	return nil, false
}

// overtake takes out what messages after the span have made out of date.
func (b *builder) overtake(context []thread.Message, of func(*thread.Message) *facts) {
	calls := map[string]*callFacts{}
	for i := range context {
		f := of(&context[i])
		for n := range f.calls {
			calls[f.calls[n].id] = &f.calls[n]
		}
		r := f.result
		if r == nil {
			continue
		}
		c := calls[r.callID]
		if c == nil {
			if ref, ok := b.calls[r.callID]; ok {
				c = &b.facts[ref.message].calls[ref.call]
			} else {
				continue
			}
		}
		failed := judge(r, c, c.class) == thread.Failure
		if !failed {
			b.change(c)
		}
		if o, whole := b.asks(c, c.class, failed); o != nil {
			b.sweep(o, r.keys, whole, false)
		}
	}
}
