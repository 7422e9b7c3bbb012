package token

import (
	"hash/maphash"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Memo caches the counts of messages, so that counting a conversation again costs only what was
// added. It counts exactly as its counter does.
//
// The key is the id of a message and a fingerprint of its content: ids are unique only inside
// one thread, and a cleared or shortened message keeps its id. A fingerprint takes about a
// hundredth of the time of counting.
//
// An entry takes about 200 bytes. It is safe for concurrent use.
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

// NewMemo returns an empty memo of at most limit messages. 0 or less is 32,768.
func NewMemo(c *Counter, limit int) *Memo {
	if limit <= 0 {
		limit = defaultMemoLimit
	}
	return &Memo{counter: c, seed: maphash.MakeSeed(), known: lru.New[memoKey, int](limit)}
}

// Counter returns the counter of the memo.
func (o *Memo) Counter() *Counter { return o.counter }

// Message returns what the counter's Message returns.
func (o *Memo) Message(m *thread.Message) int {
	return o.countOnce(memoKey{m.ID, m.Fingerprint(o.seed)}, func() int { return o.counter.Message(m) })
}

// countOnce returns the cached count, or calls count.
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
