package summarize

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Extractive summarises without a model. Every item is text that stands in the
// messages, with their ids as sources; the same input gives the same bytes.
//
// The zero value is ready to use and counts tokens as a fourth of the bytes. It
// keeps what it found in messages, so summarising a thread that grew by a step
// costs that step; keep one for many calls. It is safe for concurrent use and
// must not be copied after the first.
type Extractive struct {
	// Counter counts the tokens of a text the way the budget is meant. It must
	// be pure and safe for concurrent use. Default: bytes divided by 4, rounded up.
	Counter func(string) int
	// Memory keeps what was found in messages; nil is one of its own, of DefaultMemory.
	Memory *Memory

	ready sync.Once
	read  *Memory
	known *lru.Cache[string, int] // what texts count, in tokens
}

// maxCounts is how many texts it remembers the tokens of; most are lines.
const maxCounts = 1 << 15

// facts returns what is found in a message.
func (e *Extractive) facts(m *thread.Message) *facts {
	e.init()
	return e.read.facts(m)
}

// tokens returns what a text counts, computed once while it is kept.
func (e *Extractive) tokens(s string) int {
	e.init()
	n, ok := e.known.Get(s)
	if !ok {
		n = e.count(s)
		e.known.Put(strings.Clone(s), n, 1) // it is mostly a line of a long text
	}
	return n
}

func (e *Extractive) init() {
	e.ready.Do(func() {
		if e.read = e.Memory; e.read == nil {
			e.read = NewMemory(0)
		}
		e.known = lru.New[string, int](maxCounts)
	})
}

var _ Summarizer = (*Extractive)(nil)

// Summarize implements Summarizer. Besides ErrBudget its only errors are those
// of ctx.
func (e *Extractive) Summarize(ctx context.Context, in Input) (Result, error) {
	return e.summarize(ctx, in, false)
}

// summarize makes the summary; written says that somebody who read the messages wrote some
// of its items.
func (e *Extractive) summarize(ctx context.Context, in Input, written bool) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	p := newPool(&in, e.reading(ctx))
	p.written = written
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	// What is counted for nobody is nothing, and takes no time.
	counting := func(count func(string) int) func(string) int {
		return func(s string) int {
			if ctx.Err() != nil {
				return 0
			}
			return count(s)
		}
	}
	out, err := choose(p, in.Budget, counting(e.tokens), counting(e.count))
	if gone := ctx.Err(); gone != nil {
		return Result{}, gone
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Summary: out}, nil
}

// reading gives the facts of messages, and none once nobody waits for them: what is
// made of them then is thrown away.
func (e *Extractive) reading(ctx context.Context) func(*thread.Message) *facts {
	return func(m *thread.Message) *facts {
		if ctx.Err() != nil {
			return &facts{}
		}
		return e.facts(m)
	}
}

// count counts tokens.
func (e *Extractive) count(s string) int {
	if e.Counter == nil {
		return (len(s) + 3) / 4
	}
	return e.Counter(s)
}

// Complete makes the summary of in with what somebody else proposes to say in
// it: facts, decisions, steps of the plan, open items and failed attempts, which
// compete for the budget with what Extractive finds itself. Everything that is
// the user's or the assistant's word (task, requests, constraints, conclusions),
// files, calls, identifiers and artifacts come from the messages and the
// previous summary alone, whatever is proposed (A5). Nothing proposed is
// checked here; that is what Verified is for. The errors are those of Summarize.
func (e *Extractive) Complete(ctx context.Context, in Input, proposed summary.Summary) (Result, error) {
	var previous summary.Summary
	if in.Previous != nil {
		previous = *in.Previous
	}
	extra := summary.Summary{
		Facts: proposed.Facts, Decisions: proposed.Decisions, OpenItems: proposed.OpenItems, FailedAttempts: proposed.FailedAttempts,
		// A plan is only added to: a proposal that forgets a step takes none away. One that
		// repeats a step says how far it is now.
		CurrentPlan: slices.Clone(previous.CurrentPlan),
	}
	for _, step := range proposed.CurrentPlan {
		if i := slices.IndexFunc(extra.CurrentPlan, func(s summary.Step) bool { return plainly(s.Text) == plainly(step.Text) }); i >= 0 {
			extra.CurrentPlan[i] = step
		} else {
			extra.CurrentPlan = append(extra.CurrentPlan, step)
		}
	}
	merged := summary.Merge(previous, extra)
	in.Previous = &merged
	return e.summarize(ctx, in, len(proposed.Sections()) > 0)
}

// Memory keeps what was found in messages, so that summarising a thread that grew by
// one step costs that step. What was not asked for longest goes. Several summarizers
// may share one. Safe for concurrent use.
type Memory struct {
	seed maphash.Seed
	read *lru.Cache[factsKey, *facts]
}

// DefaultMemory is what a Memory keeps at most where nothing is said, in bytes.
const DefaultMemory = 64 << 20

// NewMemory returns a Memory of about so many bytes; 0 is DefaultMemory.
func NewMemory(bytes int) *Memory {
	if bytes == 0 {
		bytes = DefaultMemory
	}
	return &Memory{seed: maphash.MakeSeed(), read: lru.New[factsKey, *facts](bytes)}
}

// Bytes is about what is kept.
func (c *Memory) Bytes() int {
	_, bytes := c.read.Stats()
	return bytes
}

// factsKey names a message by id and content: ids that callers bring may be
// used again in another thread.
type factsKey struct {
	id   thread.ID
	hash uint64
}

// facts returns the facts of a message, read now if they are not kept.
func (c *Memory) facts(m *thread.Message) *facts {
	k := factsKey{m.ID, m.Fingerprint(c.seed)}
	f, ok := c.read.Get(k)
	if !ok {
		f = read(m)
		c.read.Put(k, f, f.size())
	}
	return f
}

// size is about what facts take, in bytes.
func (f *facts) size() int {
	n := 256 + len(f.user)
	lists := [][]piece{f.rules, f.said, f.recap}
	if f.result != nil {
		lists = append(lists, f.result.errors, f.result.keys, f.result.report)
	}
	for _, list := range lists {
		for i := range list {
			n += 64 + len(list[i].text) + 16*cap(list[i].idents)
		}
	}
	return n
}
