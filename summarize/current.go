package summarize

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// origin is something that is asked more than once: a file, or a call that is repeated with
// the same arguments. Its last answer is what is true now. A line of an earlier answer
// that is gone would pass for the present, so its candidate is dropped. It holds the candidate
// of each line that is there.
type origin map[string]int

// originKey names an origin: a file by its path, a call by its tool and input.
type originKey struct{ tool, input string }

func fileKey(path string) originKey { return originKey{input: path} }

// callKey names a call. Calls whose arguments were cut short have no key: two of them may
// differ in the rest.
func callKey(c *callFacts) (key originKey, ok bool) {
	return originKey{c.Name, c.Input}, c.Input != "" && !strings.Contains(c.Input, "…")
}

// countOrigins counts how often each origin is asked or changed: one that comes up once
// need not be tracked.
func (b *builder) countOrigins(f *facts) {
	for n := range f.calls {
		c := &f.calls[n]
		for _, op := range c.Files {
			b.uses[fileKey(op.Path)]++
		}
		if key, ok := callKey(c); ok && c.Class != toolclass.Read {
			b.uses[key]++
		}
	}
}

// origin returns the origin of a key, which may be new; nil if it comes up only once.
func (b *builder) origin(key originKey) origin {
	o := b.origins[key]
	if o == nil && b.uses[key] > 1 {
		o = origin{}
		b.origins[key] = o
	}
	return o
}

// originOf returns the origin that a call asks, or nil, and whether its answer is whole.
func (b *builder) originOf(x *exchange) (o origin, whole bool) {
	if x.result.Unanswered() || x.result.Claim != "" {
		return nil, false
	}
	switch x.class {
	case toolclass.Edit, toolclass.Write, toolclass.Agent, toolclass.Question:
		return nil, false
	case toolclass.Read:
		if path := x.call.path(); path != "" && !x.failed() {
			return b.origin(fileKey(path)), false
		}
		return nil, false
	}
	if key, ok := callKey(x.call); ok {
		return b.origin(key), true
	}
	return nil, false
}

// failed reports whether the lines of a result are none of what was asked for.
func (x *exchange) failed() bool {
	return x.ended == thread.Failure || x.class == toolclass.Read && x.result.Unread
}

// drop drops the candidate of a line.
func (b *builder) drop(o origin, line string) {
	if at, ok := o[line]; ok {
		delete(o, line)
		delete(b.seen, seenText{seenLine, line}) // a later answer may bring it again
		b.candidates[at].dead = true
	}
}

// dropAll drops all lines of an origin.
func (b *builder) dropAll(o origin) {
	for line := range o {
		b.drop(o, line)
	}
}

// dropStale drops the lines that a new answer of an origin has made out of date: those that it lacks, if it is
// whole. With says, those that it has are dropped too: their new candidates follow.
func (b *builder) dropStale(o origin, lines []piece, whole, says bool) {
	switch {
	case whole && says, !b.effort.Spend(8 * len(o)): // or which of its lines hold is not known
		b.dropAll(o)
	case says: // and of each earlier answer what stood between two lines that it has
		between := map[int][2]int{}
		for n := range lines {
			if at, ok := o[lines[n].text]; ok {
				entry := b.candidates[at].entry
				span, again := between[entry]
				if !again {
					span = [2]int{at, at}
				}
				between[entry] = [2]int{min(span[0], at), max(span[1], at)}
			}
		}
		for line, at := range o {
			if span, again := between[b.candidates[at].entry]; again && span[0] <= at && at <= span[1] {
				b.drop(o, line)
			}
		}
	case whole:
		now := make(map[string]bool, len(lines))
		for n := range lines {
			now[lines[n].text] = true
		}
		for line := range o {
			if !now[line] {
				b.drop(o, line)
			}
		}
	}
}

// track makes the candidates from a position on the newest answer of an origin.
func (b *builder) track(o origin, from int) {
	for at := from; at < len(b.candidates); at++ {
		if c := &b.candidates[at]; c.section == secSnippet {
			o[c.text] = at
		}
	}
}

// applyEdit drops the lines that a call took out of its files, or may have taken out.
func (b *builder) applyEdit(x *exchange) {
	c := x.call
	did, perhaps := c.Did(&x.result.Result)
	for _, op := range perhaps {
		if o := b.origins[fileKey(op.Path)]; o != nil && (op.Op == "deleted" || op.Op == "created") {
			b.dropAll(o)
		}
	}
	for _, op := range did {
		o := b.origins[fileKey(op.Path)]
		switch {
		case o == nil:
		case op.Op == "deleted", op.Op == "created" && (c.Class == toolclass.Shell || len(c.changed) < maxChanged):
			b.dropAll(o) // what is written follows
		default:
			for _, line := range c.removed {
				b.drop(o, line)
			}
		}
	}
}

// addLines adds the lines of a result and drops those that it makes out of date.
func (b *builder) addLines(x *exchange, base float32) {
	c, r := x.call, x.result
	if c == nil {
		b.snippet(x.at, x.told, c, label(c, r.tool, x.failed()), r.plain(c), base)
		return
	}
	b.applyEdit(x)
	if r.Canceled {
		return // it may have changed files, and tells nothing
	}
	if from := len(b.candidates); changesFile(x.class) {
		edit := c.Name + " " + c.Input
		if x.failed() {
			edit = "failed " + edit
		}
		b.snippet(x.from, x.told, c, edit, c.changed, changedBase)
		if o := b.origin(fileKey(c.path())); o != nil && c.path() != "" && !x.failed() {
			b.track(o, from)
		}
	}
	from := len(b.candidates)
	o, whole := b.originOf(x)
	lines := r.plain(c)
	if o != nil {
		b.dropStale(o, lines, whole, true)
	}
	b.snippet(x.at, x.told, c, label(c, r.tool, x.failed()), lines, base)
	if o != nil {
		b.track(o, from)
	}
}

// applyLater drops what messages after the span have made out of date, and brings the agent's list of
// tasks up to the end of the log. If another summary follows, the list stands there.
func (b *builder) applyLater() {
	tasks := false
	for i := range b.in.Context {
		m := &b.in.Context[i]
		f := b.read(m)
		for n := range f.calls {
			c := &f.calls[n]
			b.calls[c.ID] = asking{c, m, len(b.messages) + i}
			if c.Class == toolclass.Todo && b.in.Log != nil {
				b.tasks.change(m, c)
				tasks = true
			}
		}
		if f.result == nil {
			continue
		}
		x := b.exchange(len(b.messages), m, f.result)
		switch {
		case x.call == nil:
		case x.class == toolclass.Todo:
			if b.in.Log != nil {
				b.tasks.answer(x.call, f.result)
			}
		default:
			b.applyEdit(x)
			if o, whole := b.originOf(x); o != nil {
				b.dropStale(o, f.result.plain(x.call), whole, false)
			}
		}
	}
	if b.in.Continued && tasks {
		b.tasks = taskList{}
	}
}
