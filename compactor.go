package palimpsest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// Compactor makes plans and prompts. It is safe for concurrent use; the counts
// of messages are kept between calls, so that planning again after one more
// step counts only the step.
type Compactor struct {
	config    Config
	histories *histories
	search    *recall.Hybrid // nil without an Embedder

	mu      sync.Mutex
	threads map[string]*Thread
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
	if c.Name == "" {
		c.Name = "auto"
	}
	if c.Policy == nil {
		c.Policy = policy.Auto{}
	}
	memory := &store.Memory{}
	if c.Log == nil {
		c.Log = memory
	}
	if c.Plans == nil {
		c.Plans = memory
	}
	if c.Tools == nil {
		c.Tools = toolpolicy.New(nil)
	}
	if c.Summarizer == nil {
		c.Summarizer = &summarize.Extractive{Counter: token.NewLines(c.Counter).Text}
	}
	if c.Patience <= 0 {
		c.Patience = defaultPatience
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	out := &Compactor{config: c, histories: newHistories(c.Counter), stands: token.NewMemo(c.Counter, 0), threads: map[string]*Thread{}}
	if c.Recall != nil && c.Recall.Embedder != nil {
		out.search = &recall.Hybrid{Embedder: c.Recall.Embedder}
	}
	return out, nil
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
	s := c.state(q.Thread, q.Base, q.Profile, 1)
	s.Name = c.namer(ctx)
	s.Budget = q.Budget
	whole, err := s.Render(s.Draft(c.config.Name))
	fitted := whole
	if err == nil && whole.Tokens > q.Budget {
		fitted, err = policy.Fit(ctx, s, c.config.Name, c.config.Ladder, q.Budget)
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", q.Thread.ID(), err)
	}
	fitted.Plan.OriginalTokens, fitted.Plan.CompactedTokens = whole.Tokens, fitted.Tokens
	return result(s, whole, fitted), nil
}

// Render renders the thread under a plan that was made before, for this or a
// shorter version of it, and counts the request. A nil plan hides nothing.
func (c *Compactor) Render(p *plan.Plan, q Request) (*Result, error) {
	s := c.state(q.Thread, q.Base, q.Profile, 1)
	s.Current = p
	whole, err := s.Render(nil)
	fitted := whole
	if err == nil && p != nil {
		fitted, err = s.Render(p)
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Render(%s): %w", q.Thread.ID(), err)
	}
	return result(s, whole, fitted), nil
}

// namer gives ids to what plans put aside. Where the keys that it needs are not
// there ids are plain ones; such a plan fails where its contents are to be kept.
func (c *Compactor) namer(ctx context.Context) artifact.Namer {
	if c.config.Artifacts == nil {
		return nil
	}
	name, err := c.config.Artifacts.Namer(ctx, c.config.Requester.TenantID)
	if err != nil {
		return nil
	}
	return name
}

// state is what a policy needs to know of a thread before a request, in tokens
// of the counter times the factor.
func (c *Compactor) state(t *thread.Thread, around *prompt.Prompt, profile render.Profile, factor float64) *policy.State {
	base := prompt.Prompt{}
	if around != nil {
		base = *around
	}
	base.Messages = nil
	known := c.histories.of(t.ID(), profile)
	changed, plain := known.sizes(t)
	s := &policy.State{
		Thread: t, Memo: &known.memo, Base: &base, Profile: profile,
		Counter: c.config.Counter, Count: c.stands.Message, Fixed: c.stands.Prompt(&base),
		Changed: changed, Plain: plain,
		Summarizer: c.config.Summarizer, Tools: c.config.Tools, Source: c.config.Current, Now: c.config.Now,
	}
	if factor != 1 {
		calibrate(s, factor)
	}
	return s
}

func result(s *policy.State, whole, f *policy.Fitted) *Result {
	return &Result{
		Plan: f.Plan, Prompt: f.Prompt, Manifest: f.Manifest,
		Before: whole.Tokens, After: f.Tokens, Fixed: s.Fixed,
		Sizes: s.Plain, PromptSizes: f.Sizes, Pinned: f.Pinned, Tail: f.Tail,
	}
}
