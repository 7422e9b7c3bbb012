package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// Config is what a Compactor is made of. The zero value is the default: exact
// o200k counts, the automatic ladder, summaries without a model.
type Config struct {
	// Counter counts everything. Nil counts o200k tokens.
	Counter *token.Counter
	// Ladder is how room is made. Nil is strategy.Auto.
	Ladder strategy.Ladder
	// Policy is the name written into plans. Empty is "auto".
	Policy string
	// Summarizer makes summaries. Nil is the extractive one, which needs no
	// model.
	Summarizer summarize.Summarizer
	// Tools declares how durable the results of tools are. Nil holds the
	// built-in declarations.
	Tools *toolpolicy.Registry
	// Current says what the source of a replayable result looks like now, so
	// that it may be cleared when it has not changed. Nil: nobody can tell.
	Current func(thread.ToolCall) (thread.Determinism, bool)
	// Now is the clock that dates plans. Nil is time.Now.
	Now func() time.Time
}

// Compactor makes plans and prompts. It is safe for concurrent use; the counts
// of messages are kept between calls, so that planning again after one more
// step counts only the step.
type Compactor struct {
	config Config
	sizes  *sizes
	// stands remembers the counts of what stands in place of messages: most of
	// it is the same in the next plan.
	stands *token.Memo
}

// New returns a Compactor. The error says which part of the configuration
// cannot be used.
func New(c Config) (*Compactor, error) {
	if c.Counter == nil {
		counter, err := token.New("o200k", nil)
		if err != nil {
			return nil, fmt.Errorf("palimpsest.New: %w", err)
		}
		c.Counter = counter
	}
	if c.Ladder == nil {
		c.Ladder = strategy.Auto()
	}
	if c.Policy == "" {
		c.Policy = "auto"
	}
	if c.Tools == nil {
		c.Tools = toolpolicy.New(nil)
	}
	if c.Summarizer == nil {
		c.Summarizer = &summarize.Extractive{Counter: c.Counter.Text}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Compactor{config: c, sizes: newSizes(c.Counter), stands: token.NewMemo(c.Counter, 0)}, nil
}

// Request is one compaction. Thread and Budget are required.
type Request struct {
	Thread *thread.Thread
	// Base gives model, system, tools and the request around them; its messages
	// are not used. May be nil.
	Base *prompt.Prompt
	// Budget bounds the whole request (system, tools and messages), in tokens.
	Budget int
	// Profile is the provider that will read the prompt.
	Profile render.Profile
}

// Result is a compaction that fits.
type Result struct {
	// Plan is empty when the thread fits as it is.
	Plan     *plan.Plan
	Prompt   *prompt.Prompt
	Manifest *render.Manifest
	// Before and After are the tokens of the whole request; Fixed is the part
	// of both that no plan can change: system, tools and what frames them.
	Before, After, Fixed int
	// Sizes are the tokens of each message of the thread when it is sent as it
	// is, PromptSizes those of each message of the prompt.
	Sizes, PromptSizes []int
	// Pinned are the positions of the messages that the plan was not allowed to
	// touch, Tail is where the protected newest part begins; nil and 0 when
	// nothing had to be planned.
	Pinned []int
	Tail   int
}

// Compact plans how the thread fits the budget and renders the prompt. A thread
// that fits is rendered under an empty plan. An error that wraps ErrOverBudget
// is a *BudgetError and names the parts that do not fit; nothing else is
// refused, since the last resort needs neither a model nor a store.
func (c *Compactor) Compact(ctx context.Context, q Request) (*Result, error) {
	pairs := thread.Pair(q.Thread)
	base := prompt.Prompt{}
	if q.Base != nil {
		base = *q.Base
	}
	base.Messages = nil
	job := job{Compactor: c, Request: q, pairs: pairs, base: &base, fixed: c.config.Counter.Prompt(&base)}
	whole, err := job.render(job.emptyPlan())
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", q.Thread.ID(), err)
	}
	job.before = whole.After
	if whole.After <= q.Budget {
		whole.Before = whole.After
		whole.Plan.OriginalTokens, whole.Plan.CompactedTokens = whole.After, whole.After
		return whole, nil
	}
	res, err := job.compact(ctx)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", q.Thread.ID(), err)
	}
	return res, nil
}

// Render renders the thread under a plan that was made before, for this or a
// shorter version of it, and counts the request. A nil plan hides nothing.
func (c *Compactor) Render(p *plan.Plan, q Request) (*Result, error) {
	base := prompt.Prompt{}
	if q.Base != nil {
		base = *q.Base
	}
	base.Messages = nil
	job := job{Compactor: c, Request: q, pairs: thread.Pair(q.Thread), base: &base, fixed: c.config.Counter.Prompt(&base)}
	whole, err := job.render(job.emptyPlan())
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Render(%s): %w", q.Thread.ID(), err)
	}
	if p == nil {
		return whole, nil
	}
	res, err := job.render(p)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Render(%s): %w", q.Thread.ID(), err)
	}
	res.Before = whole.After
	return res, nil
}

// job is one compaction under way.
type job struct {
	*Compactor
	Request
	pairs  *thread.Pairing
	base   *prompt.Prompt
	fixed  int
	before int
}

func (j *job) emptyPlan() *plan.Plan {
	return &plan.Plan{
		Schema: plan.SchemaVersion, ThreadID: j.Thread.ID(), ThreadVersion: j.Thread.Version(),
		CreatedAt: j.config.Now().UTC(), Policy: j.config.Policy, Counter: j.config.Counter.Name(),
	}
}

// attempts bounds how often a plan is made again because the rendered request
// came out larger than the planner's sum (repairs of the log add a little).
const attempts = 5

// slackStep is what each further attempt leaves free beside, in tokens times the
// square of its number: a smaller room can be filled a little differently.
const slackStep = 4

// compact tries the levels of protection, the most generous first.
func (j *job) compact(ctx context.Context) (*Result, error) {
	var failed error
	given := strategy.Given{
		Thread: j.Thread, Pairs: j.pairs, Profile: j.Profile,
		Count: j.stands.Message, CountText: j.config.Counter.Text,
		Sizes: j.sizes.of(j.Thread, j.Profile, true), Tools: j.config.Tools,
		Current: j.config.Current, Summarizer: j.config.Summarizer,
	}
	for _, level := range strategy.Protections() {
		room := j.Budget - j.fixed
		for n := range attempts {
			given.Room = room
			if room <= 0 {
				return nil, j.overBudget(failed)
			}
			v := strategy.NewView(given)
			v.Protect(level)
			fits, err := j.config.Ladder.Climb(ctx, v)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if !fits {
				failed = errors.Join(failed, err)
				break
			}
			p := j.emptyPlan()
			for _, record := range v.Records() {
				p.Add(record)
			}
			res, err := j.render(p)
			if err != nil {
				return nil, err
			}
			if res.After <= j.Budget {
				res.Before = j.before
				res.Pinned, res.Tail = v.PinnedPositions(), v.Tail
				p.OriginalTokens, p.CompactedTokens = j.before, res.After
				return res, nil
			}
			room -= res.After - j.Budget + n*n*slackStep
		}
	}
	return nil, j.overBudget(failed)
}

// render renders and counts. Messages that stand as they are in the log are not
// counted again.
func (j *job) render(p *plan.Plan) (*Result, error) {
	out, manifest, err := render.Render(j.Thread, p, j.base, &render.Options{Profile: j.Profile, Pairs: j.pairs})
	if err != nil {
		return nil, err
	}
	known := j.sizes.of(j.Thread, j.Profile, !p.Empty())
	total := j.fixed
	sizes := make([]int, len(out.Messages))
	for n := range out.Messages {
		o := manifest.Messages[n]
		if i, ok := j.Thread.Index(o.ID); ok && o.Record.Action == plan.Include && !o.Synthetic && i < p.ThreadVersion {
			sizes[n] = known[i]
		} else {
			sizes[n] = j.stands.Message(&out.Messages[n])
		}
		total += sizes[n]
	}
	return &Result{
		Plan: p, Prompt: out, Manifest: manifest, Before: total, After: total, Fixed: j.fixed,
		Sizes: j.sizes.of(j.Thread, j.Profile, false), PromptSizes: sizes,
	}, nil
}
