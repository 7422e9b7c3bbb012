package summarize

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// origin is something that is asked more than once: a file, or a call that is repeated with
// the same arguments. Its last answer is what is true now. A line of an earlier answer
// that the last one lacks would pass for the present, so its candidate is dropped.
type origin struct {
	held []int          // the candidates of its lines, answer after answer; some of them dropped
	at   map[string]int // of each line that holds, its candidate
}

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
func (b *builder) origin(key originKey) *origin {
	o := b.origins[key]
	if o == nil && b.uses[key] > 1 {
		o = &origin{at: map[string]int{}}
		b.origins[key] = o
	}
	return o
}

// originOf returns the origin that a call asks, or nil, and whether its answer is whole.
func (b *builder) originOf(x *exchange) (o *origin, whole bool) {
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
func (b *builder) drop(o *origin, line string) {
	if at, ok := o.at[line]; ok {
		delete(o.at, line)
		delete(b.seen, seenText{seenLine, line}) // a later answer may bring it again
		b.candidates[at].dead = true
	}
}

// dropAll drops all lines of an origin.
func (b *builder) dropAll(o *origin) {
	for _, at := range o.held {
		b.drop(o, b.candidates[at].text)
	}
	o.held = nil
}

// nearby is how far apart, beyond twice their old distance, two lines may be in a new
// reading so that the lines between them count as read again.
const nearby = 10

// dropStale drops the lines that a new answer of an origin has made out of date. If the
// answer is whole, that is every line that it lacks. If it is a part of a file, it is the
// lines that it lacks between two lines that it has, if those are about as near to each
// other as before. With says, lines that it has are dropped too: their new candidates follow.
func (b *builder) dropStale(o *origin, lines []piece, whole, says bool) {
	if whole && says || !b.effort.Spend(8*len(o.held)) { // else which of its lines hold is not known
		b.dropAll(o)
	}
	if len(o.held) == 0 {
		return
	}
	where := make(map[string]int, len(lines)) // -1 for several places
	for n := range lines {
		line := lines[n].text
		if _, twice := where[line]; twice {
			n = -1
		}
		where[line] = n
	}
	var held []int
	answer, since := -1, 0  // the answer of the line before, and where in held its lines after the anchor begin
	anchor, place := -1, -1 // the last line of it that both have: its place in the old and the new one
	for n, at := range o.held {
		c := &b.candidates[at]
		if c.dead {
			continue
		}
		if c.entry != answer {
			answer, anchor, since = c.entry, -1, len(held)
		}
		now, has := where[c.text]
		if has && now >= 0 {
			if anchor >= 0 && now > place && now-place <= 2*(n-anchor)+nearby {
				for _, between := range held[since:] {
					b.drop(o, b.candidates[between].text)
				}
			}
			anchor, place = n, now
		}
		if has && says || !has && whole {
			b.drop(o, c.text)
		} else {
			held = append(held, at)
		}
		if has {
			since = len(held)
		}
	}
	o.held = held
}

// track makes the candidates from a position on the newest answer of an origin.
func (b *builder) track(o *origin, from int) {
	for at := from; at < len(b.candidates); at++ {
		if c := &b.candidates[at]; c.section == secSnippet {
			o.at[c.text], o.held = at, append(o.held, at)
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
