package palimpsest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
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
)

// Compactor makes plans and prompts, of sessions and of single requests. New makes
// one; the zero value is of no use. It is safe for concurrent use. The counts of
// messages are kept between calls, so that planning again after one more step counts
// only the step.
type Compactor struct {
	config Config
	search *recall.Hybrid // nil without an Embedder
	// tokenMemo remembers the counts of what stands in place of messages: most of
	// it is the same in the next plan.
	tokenMemo *token.Memo
	// signing is the key of signatures.
	signing signingKey
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
	c.Name = cmp.Or(c.Name, "auto")
	c.Policy = cmp.Or[policy.Policy](c.Policy, policy.Auto{})
	memory := &store.Memory{}
	c.Log, c.Plans = cmp.Or[store.Log](c.Log, memory), cmp.Or[store.Plans](c.Plans, memory)
	c.Answers = cmp.Or(c.Answers, llm.NewAnswers(nil))
	c.Memory = cmp.Or(c.Memory, NewMemory(0))
	if c.Summarizer == nil {
		c.Summarizer = c.Memory.Summarizer(c.Counter)
	}
	c.Patience = cmp.Or(max(c.Patience, 0), DefaultPatience)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Sign = c.Sign && c.Documents != nil
	out := &Compactor{config: c, tokenMemo: token.NewMemo(c.Counter, 0)}
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
	// Fixed is what system and tools take, in tokens, where Base does not hold them; 0
	// where it does.
	Fixed int
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
	// Summaries are the reports of the summaries that were asked for; more may be
	// made than the plan holds.
	Summaries []summarize.Report
}

// Compact plans how the thread fits the budget and renders the prompt. A thread
// that fits is rendered under an empty plan. An error that wraps ErrOverBudget
// is a *BudgetError and names the parts that do not fit; nothing else is
// refused, since the last resort needs neither a model nor a store.
func (c *Compactor) Compact(ctx context.Context, q Request) (*Result, error) {
	var situation *policy.Situation
	uncounted, err := c.requestSituation(ctx, q)
	if err == nil {
		uncounted.Namer, uncounted.Budget = c.namer(ctx), q.Budget
		situation, err = policy.Situate(uncounted)
	}
	var fitted *policy.Fitted
	if err == nil {
		fitted = situation.Rendered
	}
	if err == nil && situation.PromptTokens > q.Budget {
		fitted, err = policy.Fit(ctx, situation, c.config.Name, c.config.Ladder, q.Budget, q.Budget)
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", q.Thread.ID(), err)
	}
	if fitted == situation.Rendered {
		fitted = &policy.Fitted{Plan: situation.Draft(c.config.Name), Prompt: fitted.Prompt, Manifest: fitted.Manifest, Sizes: fitted.Sizes, Tokens: fitted.Tokens}
	}
	fitted.Plan.Round, fitted.Plan.OriginalTokens, fitted.Plan.CompactedTokens = 0, situation.PromptTokens, fitted.Tokens
	return newResult(situation, situation.Rendered, fitted), nil
}

// Render renders the thread under a plan that was made before, for this or a
// shorter version of it, and counts the request. A nil plan hides nothing.
func (c *Compactor) Render(p *plan.Plan, q Request) (*Result, error) {
	situation, err := c.requestSituation(context.Background(), q) // which never ends
	if err != nil {
		return nil, err
	}
	whole, err := policy.Situate(situation)
	fitted := whole
	if err == nil && p != nil {
		situation.Current = p
		fitted, err = policy.Situate(situation)
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Render(%s): %w", q.Thread.ID(), err)
	}
	return newResult(whole, whole.Rendered, fitted.Rendered), nil
}

// requestSituation is the situation of one request, without a session.
func (c *Compactor) requestSituation(ctx context.Context, q Request) (policy.Situation, error) {
	base := *cmp.Or(q.Base, &prompt.Prompt{})
	base.Messages = nil
	s := c.Session(q.Thread.ID())
	k := s.state()
	defer c.config.Memory.updateSize(s, k)
	situation, err := c.baseSituation(ctx, q.Thread, &base, q.Profile, k.sizes)
	if q.Fixed > 0 {
		situation.Fixed, situation.SentFixed = q.Fixed, q.Fixed
	}
	return situation, err
}

func newResult(s *policy.Situation, whole, f *policy.Fitted) *Result {
	return &Result{
		Plan: f.Plan, Prompt: f.Prompt, Manifest: f.Manifest,
		Before: whole.Tokens, After: f.Tokens, Fixed: s.Fixed,
		Sizes: s.PlainSizes, PromptSizes: f.Sizes, Pinned: f.Pinned, Tail: f.Tail, Summaries: f.Summaries,
	}
}
