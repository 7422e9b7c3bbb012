package token

import (
	"hash/maphash"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Memo remembers the counts of messages, so that counting a conversation again
// costs only what was added to it. It counts exactly as its counter does.
//
// A count is found by the message's id together with a fingerprint of its
// content: ids are unique only inside one thread, and a cleared or shortened
// form of a message keeps the id of the whole one. Fingerprinting runs at
// memory speed, some hundred times faster than counting.
//
// It holds at most as many as NewMemo was told, about 200 bytes each, and forgets
// what was not asked for longest. Safe for concurrent use.
type Memo struct {
	counter *Counter
	seed    maphash.Seed
	known   *lru.Cache[memoKey, int]
}

type memoKey struct {
	id  thread.ID
	sum uint64
}

// defaultMemoLimit holds two dozen of the longest sessions seen.
const defaultMemoLimit = 32_768

// NewMemo returns an empty memo for the counter. A limit of 0 or less stands
// for 32,768 messages.
func NewMemo(c *Counter, limit int) *Memo {
	if limit <= 0 {
		limit = defaultMemoLimit
	}
	return &Memo{counter: c, seed: maphash.MakeSeed(), known: lru.New[memoKey, int](limit)}
}

// Counter returns the counter that the memo remembers for.
func (o *Memo) Counter() *Counter { return o.counter }

// Message returns what the counter's Message returns.
func (o *Memo) Message(m *thread.Message) int {
	return o.countOnce(memoKey{m.ID, m.Fingerprint(o.seed)}, func() int { return o.counter.Message(m) })
}

// countOnce returns what is remembered under the key, or else what count returns.
func (o *Memo) countOnce(key memoKey, count func() int) int {
	n, ok := o.known.Get(key)
	if !ok {
		n = count()
		o.known.Put(key, n, 1)
	}
	return n
}

// Prompt returns what the counter's Prompt returns.
func (o *Memo) Prompt(p *prompt.Prompt) int {
	var sum uint64
	add := func(says ...string) {
		for _, s := range says {
			sum = maphash.Comparable(o.seed, struct {
				before uint64
				says   string
			}{sum, s})
		}
	}
	for _, s := range p.System {
		add("system", s.Text)
	}
	for _, t := range p.Tools {
		add("tool", t.Name, t.Description, t.Schema, t.Raw)
	}
	n := o.counter.Overhead() + o.countOnce(memoKey{sum: sum}, func() int {
		return o.counter.System(p.System) + o.counter.Tools(p.Tools)
	})
	for i := range p.Messages {
		n += o.Message(&p.Messages[i])
	}
	return n
}
