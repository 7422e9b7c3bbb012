package references

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Shown is what a contender leaves of a history.
type Shown struct {
	// Kept are the positions of the messages that stand as they were, Other what
	// stands in the prompt beside them.
	Kept  []int
	Other []thread.Message
	// Tokens are those of all of it.
	Tokens int
	// removed are the messages that can be looked up, nil where none can; pointed are
	// those of them that a stub, a summary or a mark in the prompt stands for.
	removed, pointed map[thread.ID]bool
	// Failed says why there is no prompt; the tail alone is shown then.
	Failed error
}

// Contender is a way to fit a history into a budget. Each keeps the tail of the
// moment; the budget, in tokens, bounds the messages, the tail included.
type Contender struct {
	Name string
	Fit  func(m *Moment, budget int) *Shown
}

// Contenders are all but chance (see Random) and the agent's own summary. They share
// what they remember of messages, so they are made once for each session.
func Contenders(ctx context.Context, counter *token.Counter) ([]Contender, error) {
	ours, err := policyContenders(ctx, counter)
	return append(simpleContenders(counter), ours...), err
}

// item is a message as a contender would show it.
type item struct {
	pos  int
	size int
	// changed is the message in place of the one that was; nil for that itself.
	changed *thread.Message
}

// simpleContenders are those that need no compactor.
func simpleContenders(counter *token.Counter) []Contender {
	f := changedForms{counter}
	return []Contender{
		{"identity", func(m *Moment, _ int) *Shown { return m.Whole() }},
		{"empty", func(m *Moment, _ int) *Shown { return m.TailOnly(nil) }},
		{OracleName, f.selectOracle},
		{"head+tail", func(m *Moment, budget int) *Shown {
			items := m.plain()
			room := budget - m.Rest
			head := 0
			used := 0
			for head < m.Tail && used+items[head].size <= room/2 {
				used += items[head].size
				head++
			}
			return m.show(append(slices.Clone(items[:head]), newestItems(items[head:], m.At-m.Tail, budget-used, false)...))
		}},
		{WindowName, func(m *Moment, budget int) *Shown { return m.showNewest(m.plain(), budget, false) }},
		{"mask 10, recency", func(m *Moment, budget int) *Shown { return m.showNewest(f.maskResults(m, 10, false), budget, false) }},
		{"clear tool uses keep 3, recency", func(m *Moment, budget int) *Shown { return m.showNewest(f.maskResults(m, 3, false), budget, false) }},
		{"AI SDK prune 20, recency", func(m *Moment, budget int) *Shown { return m.showNewest(f.pruneMessages(m, 20), budget, false) }},
		{BestSimple, func(m *Moment, budget int) *Shown { return m.showNewest(f.maskResults(m, 10, true), budget, true) }},
	}
}

// The names of contenders that others than themselves speak of.
const (
	RandomName = "random"
	WindowName = "sliding window"
	OracleName = "oracle"
	BestSimple = "best simple"
	AutoName   = "auto"
	NotesName  = "notes"
	OwnName    = "the agent's own summary"
)

// ContenderOrder is that of the contenders in a report.
var ContenderOrder = []string{
	"identity", "empty", RandomName, "head+tail", WindowName, "mask 10, recency", "clear tool uses keep 3, recency",
	"AI SDK prune 20, recency", BestSimple, OracleName, "ladder", "session", "timeline", "workstream", "loop", OwnName, NotesName, AutoName,
}

// RandomDraws is how many selections chance is measured by.
const RandomDraws = 20

// Random keeps whole messages by chance, the same ones for the same seed.
func Random(seed uint64) Contender {
	return Contender{RandomName, func(m *Moment, budget int) *Shown {
		items := m.plain()
		rng := rand.New(rand.NewPCG(seed, uint64(m.At)<<20+uint64(m.Size)))
		room := budget - m.Rest
		picked := slices.Clone(items[m.Tail:])
		for _, i := range rng.Perm(m.Tail) {
			if items[i].size <= room {
				room -= items[i].size
				picked = append(picked, items[i])
			}
		}
		return m.show(picked)
	}}
}

// OwnSummary is the summary that the agent itself wrote at a moment (Moment.Recap).
func OwnSummary() Contender {
	return Contender{OwnName, func(m *Moment, _ int) *Shown {
		s := m.TailOnly(nil)
		s.Other = append(s.Other, m.Recap.Text)
		s.Tokens += m.Recap.Size
		return s
	}}
}

// Whole shows the history as it was.
func (m *Moment) Whole() *Shown { return m.show(m.plain()) }

// TailOnly shows the tail alone: what is left when a contender failed, for the reason
// given.
func (m *Moment) TailOnly(failed error) *Shown {
	s := m.show(m.plain()[m.Tail:])
	s.Failed = failed
	return s
}

// plain are the messages of the history as they were.
func (m *Moment) plain() []item {
	items := make([]item, m.At)
	for i := range items {
		items[i] = item{pos: i, size: m.Sizes[i]}
	}
	return items
}

func (m *Moment) show(items []item) *Shown {
	s := &Shown{}
	for _, it := range items {
		s.Tokens += it.size
		if it.changed == nil {
			s.Kept = append(s.Kept, it.pos)
		} else {
			s.Other = append(s.Other, *it.changed)
		}
	}
	slices.Sort(s.Kept)
	return s
}

func (m *Moment) showNewest(items []item, budget int, skip bool) *Shown {
	return m.show(newestItems(items, m.At-m.Tail, budget, skip))
}

// newestItems keeps the newest items that fit into the budget, and the last tail of
// them in any case. Before the first that does not fit it keeps none, or, with skip,
// all that do.
func newestItems(items []item, tail, budget int, skip bool) []item {
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

// changedForms makes the changed forms of messages.
type changedForms struct{ counter *token.Counter }

// Cleared is the placeholder for results.
const Cleared = "[cleared]"

// maskResults keeps the newest results and replaces the others by placeholders.
func (f changedForms) maskResults(m *Moment, keep int, noReasoning bool) []item {
	items := m.plain()
	results := 0
	for i := m.At - 1; i >= 0; i-- {
		msg := m.Thread.At(i)
		if r, ok := msg.Result(); ok {
			results++
			if results > keep && i < m.Tail {
				r.Content, r.Structured = []thread.Part{thread.Text{Text: Cleared}}, ""
				f.change(&items[i], msg, []thread.Part{r})
			}
			continue
		}
		if noReasoning && i < m.Tail {
			f.without(&items[i], msg, func(p thread.Part) bool { _, is := p.(thread.Reasoning); return is })
		}
	}
	return items
}

// pruneMessages does what the AI SDK documents for its function of that name: it removes
// reasoning before the last message, calls and results before the last keep messages,
// and messages that are empty then.
func (f changedForms) pruneMessages(m *Moment, keep int) []item {
	items := m.plain()
	for i := range m.Tail {
		msg := m.Thread.At(i)
		f.without(&items[i], msg, func(p thread.Part) bool {
			switch p.(type) {
			case thread.Reasoning:
				return true
			case thread.ToolCall, thread.ToolResult:
				return i < m.At-keep
			}
			return false
		})
	}
	return slices.DeleteFunc(items, func(it item) bool { return it.changed != nil && len(it.changed.Parts) == 0 })
}

func (f changedForms) without(it *item, msg *thread.Message, gone func(thread.Part) bool) {
	if slices.ContainsFunc(msg.Parts, gone) {
		f.change(it, msg, slices.DeleteFunc(slices.Clone(msg.Parts), gone))
	}
}

func (f changedForms) change(it *item, msg *thread.Message, parts []thread.Part) {
	changed := *msg
	changed.Parts = parts
	it.changed = &changed
	it.size = f.counter.Message(&changed)
}

// selectOracle knows what will be needed, and takes the smallest pieces of text that
// hold it, the cheapest first, until the budget is used up.
func (f changedForms) selectOracle(m *Moment, budget int) *Shown {
	var pieces []string
	sizes := map[string]int{}
	for _, n := range m.Needs {
		best := ""
		for _, seen := range n.Seen {
			if seen.Pos >= m.Tail || best != "" {
				break
			}
			text := m.Texts[seen.Pos]
			m.Find.Find(text, func(id int32, at, end int) {
				if _, strict := n.isBoundAt(text, at, end); id != n.ID || !strict {
					return
				}
				if piece := m.smallestBinding(&n, text, at, end); best == "" || len(piece) < len(best) {
					best = piece
				}
			})
		}
		if best != "" {
			best += "\n"
			pieces, sizes[best] = append(pieces, best), f.counter.Text(best)
		}
	}
	slices.SortStableFunc(pieces, func(a, b string) int { return sizes[a] - sizes[b] })
	var b strings.Builder
	used := f.counter.Message(&thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{}}})
	for _, piece := range pieces {
		if used += sizes[piece]; used > budget-m.Rest {
			break
		}
		b.WriteString(piece)
	}
	s := m.TailOnly(nil)
	if b.Len() > 0 {
		note := thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: b.String()}}}
		s.Other = append(s.Other, note)
		s.Tokens += f.counter.Message(&note)
	}
	return s
}

// smallestBinding is the smallest piece around an identifier that binds it.
func (m *Moment) smallestBinding(n *Need, text string, at, end int) (piece string) {
	for within := 8; within <= 256; within *= 2 {
		from, to := max(0, at-min(within, bindWithin)), min(len(text), end+min(within, bindWithin))
		for from > 0 && isWordByte[text[from]] && isWordByte[text[from-1]] {
			from--
		}
		for to < len(text) && isWordByte[text[to]] && isWordByte[text[to-1]] {
			to++
		}
		piece = text[from:to]
		if _, strict := n.isBoundAt(piece, at-from, end-from); strict {
			break
		}
	}
	return piece
}
