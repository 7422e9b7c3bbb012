package eval

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// shown is what a contender leaves of a history.
type shown struct {
	// kept are the positions of the messages that stand as they were, other what
	// stands in the prompt beside them.
	kept  []int
	other []thread.Message
	// tokens are those of all of it.
	tokens int
	// removed are the messages that can be looked up, nil where none can.
	removed map[thread.ID]bool
	// pointed are those of them of which something in the prompt tells: a stub, a
	// summary, a mark.
	pointed map[thread.ID]bool
	// failed says why there is no prompt; the tail alone is shown then.
	failed error
}

// contender is a way to fit a history into a budget. Each keeps the tail of the
// moment; the budget, in tokens, bounds the messages, the tail included.
type contender struct {
	name   string
	render func(m *moment, budget int) *shown
}

// item is a message as a contender would show it.
type item struct {
	pos  int
	size int
	// changed is the message in place of the one that was; nil for that itself,
	// gone for none.
	changed *thread.Message
}

// simple are the contenders that need no engine.
func simple(counter *token.Counter) []contender {
	f := forms{counter}
	return []contender{
		{"identity", func(m *moment, _ int) *shown { return m.show(f.plain(m)) }},
		{"empty", func(m *moment, _ int) *shown { return m.show(f.plain(m)[m.tail:]) }},
		{"oracle", f.oracle},
		{"head+tail", func(m *moment, budget int) *shown {
			items := f.plain(m)
			room := budget - m.rest
			head := 0
			used := 0
			for head < m.tail && used+items[head].size <= room/2 {
				used += items[head].size
				head++
			}
			return m.show(append(slices.Clone(items[:head]), newest(items[head:], m.at-m.tail, budget-used, false)...))
		}},
		{"sliding window", func(m *moment, budget int) *shown {
			return m.show(newest(f.plain(m), m.at-m.tail, budget, false))
		}},
		{"mask 10, recency", func(m *moment, budget int) *shown {
			return m.show(newest(f.masked(m, 10, false), m.at-m.tail, budget, false))
		}},
		{"clear tool uses keep 3, recency", func(m *moment, budget int) *shown {
			return m.show(newest(f.masked(m, 3, false), m.at-m.tail, budget, false))
		}},
		{"AI SDK prune 20, recency", func(m *moment, budget int) *shown {
			items := f.pruned(m, 20)
			return m.show(newest(items, m.at-m.tail, budget, false))
		}},
		{bestSimple, func(m *moment, budget int) *shown {
			return m.show(newest(f.masked(m, 10, true), m.at-m.tail, budget, true))
		}},
	}
}

const bestSimple = "best simple"

// randoms are the selections that chance is measured by.
const randoms = 20

func random(counter *token.Counter, seed uint64) contender {
	f := forms{counter}
	return contender{"random", func(m *moment, budget int) *shown {
		items := f.plain(m)
		rng := rand.New(rand.NewPCG(seed, uint64(m.at)<<20+uint64(m.size)))
		order := rng.Perm(m.tail)
		room := budget - m.rest
		picked := slices.Clone(items[m.tail:])
		for _, i := range order {
			if items[i].size <= room {
				room -= items[i].size
				picked = append(picked, items[i])
			}
		}
		return m.show(picked)
	}}
}

// show makes what is shown of items.
func (m *moment) show(items []item) *shown {
	s := &shown{}
	for _, it := range items {
		s.tokens += it.size
		if it.changed == nil {
			s.kept = append(s.kept, it.pos)
		} else {
			s.other = append(s.other, *it.changed)
		}
	}
	slices.Sort(s.kept)
	return s
}

// newest keeps the newest items, always the last tail of them: up to the first
// that does not fit, or, with skip, all that fit.
func newest(items []item, tail, budget int, skip bool) []item {
	cut := len(items)
	var kept []item
	for i := len(items) - 1; i >= 0; i-- {
		it := items[i]
		if cut-i > tail && it.size > budget {
			if skip {
				continue
			}
			break
		}
		budget -= it.size
		kept = append(kept, it)
	}
	return kept
}

// forms makes the changed forms of messages.
type forms struct{ counter *token.Counter }

func (f forms) plain(m *moment) []item {
	items := make([]item, m.at)
	for i := range items {
		items[i] = item{pos: i, size: m.sizes[i]}
	}
	return items
}

// cleared stands in place of results.
const cleared = "[cleared]"

// masked leaves the newest results and puts a placeholder for the others.
func (f forms) masked(m *moment, keep int, noReasoning bool) []item {
	items := f.plain(m)
	results := 0
	for i := m.at - 1; i >= 0; i-- {
		msg := uncopied.At(m.thread, i)
		if r, ok := msg.Result(); ok {
			results++
			if results > keep && i < m.tail {
				r.Content, r.Structured = []thread.Part{thread.Text{Text: cleared}}, ""
				f.change(&items[i], msg, []thread.Part{r})
			}
			continue
		}
		if noReasoning && i < m.tail {
			f.without(&items[i], msg, func(p thread.Part) bool { _, is := p.(thread.Reasoning); return is })
		}
	}
	return items
}

// pruned does what the AI SDK documents for pruneMessages: reasoning goes before
// the last message, calls and their results before the last keep messages, and
// messages that are empty then go too.
func (f forms) pruned(m *moment, keep int) []item {
	items := f.plain(m)
	for i := range m.tail {
		msg := uncopied.At(m.thread, i)
		f.without(&items[i], msg, func(p thread.Part) bool {
			switch p.(type) {
			case thread.Reasoning:
				return true
			case thread.ToolCall, thread.ToolResult:
				return i < m.at-keep
			}
			return false
		})
	}
	return slices.DeleteFunc(items, func(it item) bool { return it.changed != nil && len(it.changed.Parts) == 0 })
}

func (f forms) without(it *item, msg *thread.Message, gone func(thread.Part) bool) {
	if slices.ContainsFunc(msg.Parts, gone) {
		f.change(it, msg, slices.DeleteFunc(slices.Clone(msg.Parts), gone))
	}
}

func (f forms) change(it *item, msg *thread.Message, parts []thread.Part) {
	changed := *msg
	changed.Parts = parts
	it.changed = &changed
	it.size = f.counter.Message(&changed)
}

// oracle knows what will be needed: it takes the smallest lines that hold it,
// the cheapest first, until the budget is used up.
func (f forms) oracle(m *moment, budget int) *shown {
	type span struct {
		text string
		size int
	}
	room := budget - m.rest
	var spans []span
	for _, n := range m.refs {
		var best span
		for _, seen := range n.seen {
			if seen.pos >= m.tail {
				break
			}
			text := m.texts[seen.pos]
			m.find.find(text, func(id int32, at, end int) {
				if _, strict := n.boundAt(text, at, end); id != n.id || !strict {
					return
				}
				piece := m.binding(&n, text, at, end)
				if best.text == "" || len(piece) < len(best.text) {
					best = span{text: piece}
				}
			})
			if best.text != "" {
				break
			}
		}
		if best.text != "" {
			best.size = f.counter.Text(best.text + "\n")
			spans = append(spans, best)
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.size - b.size })
	var b strings.Builder
	b.Grow(4096)
	used := f.counter.Message(&thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{}}})
	for _, sp := range spans {
		if used+sp.size > room {
			break
		}
		used += sp.size
		b.WriteString(sp.text + "\n")
	}
	s := m.show(f.plain(m)[m.tail:])
	if b.Len() > 0 {
		note := thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: b.String()}}}
		s.other = append(s.other, note)
		s.tokens += f.counter.Message(&note)
	}
	return s
}

// binding is the smallest piece around an identifier that says what it is.
func (m *moment) binding(n *need, text string, at, end int) string {
	for _, within := range []int{8, 16, 32, 64, 128, bindWithin} {
		from, to := max(0, at-within), min(len(text), end+within)
		for from > 0 && word[text[from]] && word[text[from-1]] {
			from--
		}
		for to < len(text) && word[text[to]] && word[text[to-1]] {
			to++
		}
		piece := text[from:to]
		if _, strict := n.boundAt(piece, at-from, end-from); strict {
			return piece
		}
	}
	return text[max(0, at-bindWithin):min(len(text), end+bindWithin)]
}
