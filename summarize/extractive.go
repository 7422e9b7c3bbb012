package summarize

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Extractive summarises without a model. Every item is text that stands in the
// messages, with their ids as sources; the same input gives the same bytes.
//
// The zero value is ready to use and counts tokens as a fourth of the bytes. It
// keeps what it found in messages, so of a thread that grew by a step only that
// step is read again; what was read is gone through each time, which is little
// beside the reading. Keep one for many calls. It is safe for concurrent use and
// must not be copied after the first.
type Extractive struct {
	// Counter counts the tokens of a text as the budget counts them. It must be pure and
	// safe for concurrent use. Nil divides the bytes by 4 and rounds up.
	Counter func(string) int
	// Memory caches what was read from messages; nil means an own one of 64 MB.
	Memory *Memory
	// StandingShare is the share of a summary's budget, as a ratio, for what the user laid down; 0 means 0.3.
	// Beside what a model wrote, which tells of it as well, it is half of that.
	StandingShare float64

	ready sync.Once
	read  *Memory
	known *lru.Cache[string, int] // tokens by text
}

// countsBytes bounds the texts whose count is cached, most of them lines, each with 128 bytes for its entry.
const countsBytes = 4 << 20

// tokens is count with a cache.
func (e *Extractive) tokens(s string) int {
	e.init()
	n, ok := e.known.Get(s)
	if !ok {
		n = e.count(s)
		e.known.Put(strings.Clone(s), n, 128+len(s)) // it is mostly a line of a long text
	}
	return n
}

func (e *Extractive) init() {
	e.ready.Do(func() {
		if e.read = e.Memory; e.read == nil {
			e.read = NewMemory(0)
		}
		e.known = lru.New[string, int](countsBytes)
	})
}

var _ Summarizer = (*Extractive)(nil)

// Summarize implements Summarizer. Besides ErrBudget its only errors are those
// of ctx.
func (e *Extractive) Summarize(ctx context.Context, in Input) (Result, error) {
	if in.Told.Span.Len() > 0 {
		return e.complete(ctx, in)
	}
	return e.summarize(ctx, in, false)
}

// summarize makes the summary; byModel says that a model wrote some items of the previous
// summary.
func (e *Extractive) summarize(ctx context.Context, in Input, byModel bool) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	p := newPool(ctx, &in, e.reading(ctx))
	p.byModel, p.full = byModel, in.Full
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	// Counting is most of the work: once ctx is done it stops, and the result is dropped.
	counting := func(count func(string) int) func(string) int {
		return func(s string) int {
			if ctx.Err() != nil {
				return 0
			}
			return count(s)
		}
	}
	budget, omitted := in.Budget, p.omitted
	if cost := e.count(summary.Summary{Facts: omitted}.Render()); budget > 0 && 4*cost > budget {
		omitted = nil
	} else if budget > 0 && omitted != nil {
		budget -= cost
	}
	out, err := choose(p, budget, e.StandingShare, counting(e.tokens), counting(e.count))
	out.Facts = append(out.Facts, omitted...)
	if gone := ctx.Err(); gone != nil {
		return Result{}, gone
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Summary: out}, nil
}

// reading returns a function that reads messages. Once ctx is done it returns empty facts: the result
// is dropped anyway.
func (e *Extractive) reading(ctx context.Context) func(*thread.Message) *facts {
	e.init()
	work := effort.New(ctx, 0)
	return func(m *thread.Message) *facts {
		if ctx.Err() != nil {
			return &facts{userFacts: noUser}
		}
		return e.read.facts(work, m)
	}
}

func (e *Extractive) count(s string) int {
	if e.Counter == nil {
		return (len(s) + 3) / 4
	}
	return e.Counter(s)
}

// Complete makes the summary of in together with proposed facts, decisions, steps of the
// plan, open items and failed attempts, which compete for the budget with what Extractive
// finds. All other sections (the user's and the assistant's words, files, calls,
// identifiers, artifacts) come from the messages and the previous summary alone,
// whatever is proposed. What was told before (Input.Told) is proposed again, here as in Summarize, but for
// what is outdated. Proposals are not checked here: Verified does that. The errors are those of Summarize.
func (e *Extractive) Complete(ctx context.Context, in Input, proposed Result) (Result, error) {
	in.Previous, in.Told = withoutOutdated(in.Previous, proposed.Outdated), *withoutOutdated(&in.Told, proposed.Outdated)
	in.Told = in.with(proposed.Summary)
	return e.complete(ctx, in)
}

func (e *Extractive) complete(ctx context.Context, in Input) (Result, error) {
	told := in.Told
	var previous summary.Summary
	if in.Previous != nil {
		previous = *in.Previous
	}
	extra := summary.Summary{
		Facts: told.Facts, Decisions: told.Decisions, OpenItems: told.OpenItems, FailedAttempts: told.FailedAttempts,
		// A proposal adds steps and updates those that it repeats; a step that it forgets stays.
		CurrentPlan: slices.Clone(previous.CurrentPlan),
	}
	at := map[string]int{}
	for i, s := range slices.Backward(extra.CurrentPlan) {
		at[normalized(s.Text)] = i
	}
	for _, step := range told.CurrentPlan {
		if i, known := at[normalized(step.Text)]; known {
			extra.CurrentPlan[i] = step
		} else {
			at[normalized(step.Text)], extra.CurrentPlan = len(extra.CurrentPlan), append(extra.CurrentPlan, step)
		}
	}
	merged := summary.Merge(previous, extra)
	in.Previous = &merged
	out, err := e.summarize(ctx, in, len(told.Sections()) > 0)
	if told.Span.Len() > 0 {
		out.Told = &told
	}
	return out, err
}

// Memory caches what was read from messages, so that of a thread that grew by one step only
// that step is read again. It drops the least recently used. Several summarizers may share one.
// Safe for concurrent use.
type Memory struct {
	seed maphash.Seed
	read *lru.Cache[uint64, *facts] // by a hash of id and content: ids that callers bring may be used again in another thread
}

// defaultMemory is the default size of a Memory, in bytes.
const defaultMemory = 64 << 20

// NewMemory returns a Memory that keeps about that many bytes; 0 means 64 MB.
func NewMemory(bytes int) *Memory {
	if bytes == 0 {
		bytes = defaultMemory
	}
	return &Memory{seed: maphash.MakeSeed(), read: lru.New[uint64, *facts](bytes)}
}

// Bytes is about how much is kept.
func (c *Memory) Bytes() int {
	_, bytes := c.read.Stats()
	return bytes
}

// facts returns the facts of a message, read now if they are not kept. Once the work has
// ended they are empty.
func (c *Memory) facts(work *effort.Budget, m *thread.Message) *facts {
	k := maphash.Comparable(c.seed, struct {
		id      thread.ID
		content uint64
	}{m.ID, m.Fingerprint(c.seed)})
	f, ok := c.read.Get(k)
	if !ok {
		f = readWhile(work, m)
		if !work.Live(0) {
			return &facts{userFacts: noUser}
		}
		c.read.Put(k, f, f.size())
	}
	return f
}
