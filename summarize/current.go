package summarize

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// origin is something that is asked more than once: a file, or a call that is repeated with
// the same arguments. Its last answer is what is true now. A line of an earlier answer
// that the last one lacks would pass for the present, so its candidate is dropped.
type origin struct {
	path    string             // of a file; empty for a call
	answers [][]string         // lines that still hold, by answer, the oldest first
	at      map[string]current // the place of each of them
}

// current is the place of a line that still holds.
type current struct{ candidate, answer int }

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
		o = &origin{at: map[string]current{}}
		if key.tool == "" {
			o.path = key.input
		}
		b.origins[key] = o
	}
	return o
}

// dropLine drops the candidate of a line.
func (b *builder) dropLine(o *origin, line string) {
	at, ok := o.at[line]
	if !ok {
		return
	}
	delete(o.at, line)
	delete(b.seen, seenText{seenLine, line}) // a later answer may bring it again
	b.candidates[at.candidate].dead = true
}

// dropStale drops the lines that a new answer of an origin has made out of date. If the
// answer is whole, that is every line that it lacks. If it is a part of a file, it is the
// lines that it lacks between two lines that it has, if those are about as near to each
// other as before. With says, lines that it has are dropped too: their new candidates follow.
func (b *builder) dropStale(o *origin, lines []piece, whole, says bool) {
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
	for _, k := range o.answersWith(where, whole) {
		answer := o.answers[k]
		if !b.effort.Spend(8 * len(answer)) { // which of its lines hold is not known
			for _, line := range answer {
				if o.at[line].answer == k {
					b.dropLine(o, line)
				}
			}
			o.answers[k] = nil
			continue
		}
		anchor, last := -1, 0 // the last line that both answers have: its place in the old and the new one
		kept := answer[:0:0]
		from := 0 // where in kept the lines after the anchor begin
		for n, line := range answer {
			if at, holds := o.at[line]; !holds || at.answer != k {
				continue
			}
			place, known := where[line]
			if !known {
				if whole {
					b.dropLine(o, line)
				} else {
					kept = append(kept, line)
				}
				continue
			}
			if place >= 0 {
				if anchor >= 0 && place > last && place-last <= 2*(n-anchor)+nearby {
					for _, between := range kept[from:] {
						if _, still := where[between]; !still {
							b.dropLine(o, between)
						}
					}
				}
				anchor, last = n, place
			}
			if says {
				b.dropLine(o, line)
			} else {
				kept = append(kept, line)
			}
			from = len(kept)
		}
		o.answers[k] = kept
	}
}

// answersWith returns the earlier answers, the oldest first, that dropStale must look at. For
// a part of a file those are the ones that share a line with it.
func (o *origin) answersWith(lines map[string]int, whole bool) []int {
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

// nearby is how far apart, beyond twice their old distance, two lines may be in a new
// reading so that the lines between them count as read again.
const nearby = 10

// track makes the candidates from a position on the newest answer of an origin.
func (b *builder) track(o *origin, from int) {
	var lines []string
	for at := from; at < len(b.candidates); at++ {
		if c := &b.candidates[at]; c.section == secSnippet {
			o.at[c.text] = current{at, len(o.answers)}
			lines = append(lines, c.text)
		}
	}
	if len(lines) > 0 {
		o.answers = append(o.answers, lines)
	}
}

// applyEdit drops the lines that a call took out of its files, or may have taken out.
func (b *builder) applyEdit(c *callFacts, r *resultFacts) {
	did, perhaps := c.Did(&r.Result)
	stays := sync.OnceValue(c.putIn)
	for _, op := range perhaps {
		if o := b.origins[fileKey(op.Path)]; o != nil && (op.Op == "deleted" || op.Op == "created") {
			b.dropOrigin(o)
		}
	}
	for _, op := range did {
		o := b.origins[fileKey(op.Path)]
		if o == nil {
			continue
		}
		switch {
		case op.Op == "deleted":
			b.dropOrigin(o)
			delete(b.origins, fileKey(op.Path))
		case op.Op == "created" && c.Class == toolclass.Shell:
			b.dropStale(o, nil, true, false) // whatever it holds now
		case op.Op == "created" && len(c.changed) < maxChanged:
			b.dropStale(o, c.changed, true, true)
		case len(c.removed) > 0:
			for _, line := range c.removed {
				if !stays()[line] {
					b.dropLine(o, line)
				}
			}
		}
	}
}

// dropOrigin drops all lines of a file that is gone.
func (b *builder) dropOrigin(o *origin) {
	for _, answer := range o.answers {
		for _, line := range answer {
			b.dropLine(o, line)
		}
	}
	clear(o.answers)
}

// addLines adds the lines of a result and drops those that it makes out of date.
func (b *builder) addLines(i int, m *thread.Message, c *callFacts, r *resultFacts, class toolclass.Class, failed bool, base float32) {
	from := len(b.candidates)
	if c == nil {
		b.snippet(i, m, c, label(c, r.tool, failed), r.idLines, base)
		return
	}
	failed = failed || class == toolclass.Read && r.Unread
	b.applyEdit(c, r)
	if r.Canceled {
		return // it may have changed files, and tells nothing
	}
	if class == toolclass.Edit || class == toolclass.Write {
		if failed {
			b.snippet(i, m, c, "failed "+c.Name+" "+c.Input, c.changed, changedBase)
		} else {
			b.snippet(i, m, c, c.Name+" "+c.Input, c.changed, changedBase)
			if o := b.origin(fileKey(c.path())); o != nil && o.path != "" {
				b.track(o, from)
			}
		}
		from = len(b.candidates)
	}
	o, whole := b.originOf(c, r, class, failed)
	if o != nil {
		b.dropStale(o, r.idLines, whole, true)
	}
	b.snippet(i, m, c, label(c, r.tool, failed), r.idLines, base)
	if o != nil {
		b.track(o, from)
	}
}

// originOf returns the origin that a call asks, or nil, and whether its answer is whole.
func (b *builder) originOf(c *callFacts, r *resultFacts, class toolclass.Class, failed bool) (o *origin, whole bool) {
	if r.Unanswered() || r.Claim != "" {
		return nil, false
	}
	switch class {
	case toolclass.Edit, toolclass.Write, toolclass.Agent, toolclass.Question:
		return nil, false
	case toolclass.Read:
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

// applyLater drops what messages after the span have made out of date.
func (b *builder) applyLater() {
	calls := map[string]*callFacts{}
	for i := range b.in.Context {
		f := b.read(&b.in.Context[i])
		for n := range f.calls {
			calls[f.calls[n].ID] = &f.calls[n]
		}
		r := f.result
		if r == nil {
			continue
		}
		c := calls[r.CallID]
		if c == nil {
			if ref, ok := b.calls[r.CallID]; ok {
				c = &b.facts[ref.message].calls[ref.call]
			} else {
				continue
			}
		}
		failed := judge(r, c, c.Class) == thread.Failure || c.Class == toolclass.Read && r.Unread
		b.applyEdit(c, r)
		if o, whole := b.originOf(c, r, c.Class, failed); o != nil {
			b.dropStale(o, r.idLines, whole, false)
		}
	}
}
