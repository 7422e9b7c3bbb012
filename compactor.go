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

// Compactor makes plans and prompts, for sessions and for single requests. New makes one.
// It is safe for concurrent use. It remembers the token counts of messages, so that
// planning after one more step counts only the new messages.
type Compactor struct {
	config Config
	search *recall.Hybrid // nil without an Embedder
	// tokenMemo remembers the counts of replacements: most of them are the same in the
	// next plan.
	tokenMemo *token.Memo
	signing   signingKey
}

// New returns a Compactor. The error says which part of the configuration cannot be used.
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
	// Base gives model, system, tools and the other request parameters; its messages are
	// not used. May be nil.
	Base *prompt.Prompt
	// Budget bounds the whole request (system, tools and messages), in tokens.
	Budget int
	// Fixed is what system and tools take, in tokens, where Base does not hold them; else
	// 0.
	Fixed int
	// Profile describes the provider that will read the prompt.
	Profile render.Profile
}

// Result is a compaction that fits its budget.
type Result struct {
	// Plan is empty when the thread fits as it is.
	Plan     *plan.Plan
	Prompt   *prompt.Prompt
	Manifest *render.Manifest
	// Before and After are the tokens of the whole request. Fixed is the part of both that
	// no plan can change: system, tools and framing.
	Before, After, Fixed int
	// Sizes are the tokens of each message of the thread, sent as it is; PromptSizes those
	// of each message of the prompt.
	Sizes, PromptSizes []int
	// Pinned are the positions of the messages that the plan had to leave alone. Tail is
	// where the protected newest part begins. Both are zero when no plan was needed.
	Pinned []int
	Tail   int
	// Summaries are the reports of all summaries that were asked for, also of those that
	// the plan does not use.
	Summaries []summarize.Report
}

// Compact plans how the thread fits the budget, and renders the prompt. A thread that fits
// is rendered under an empty plan. An error that wraps ErrOverBudget is a *BudgetError and
// names the parts that do not fit. Of summaries that were asked for in vain,
// policy.SummariesOf the error has the reports.
func (c *Compactor) Compact(ctx context.Context, q Request) (_ *Result, err error) {
	defer nameCall(&err, "Compact", q.Thread.ID())
	uncounted, err := c.requestSituation(ctx, q)
	if err != nil {
		return nil, err
	}
	uncounted.Namer, uncounted.Budget = c.namer(ctx), q.Budget
	situation, err := policy.Situate(uncounted)
	if err != nil {
		return nil, err
	}
	fitted := new(*situation.Rendered)
	if situation.PromptTokens <= q.Budget {
		fitted.Plan = situation.Draft(c.config.Name)
	} else if fitted, err = policy.Fit(ctx, situation, c.config.Name, c.config.Ladder, q.Budget, q.Budget); err != nil {
		return nil, err
	}
	fitted.Plan.Round, fitted.Plan.OriginalTokens, fitted.Plan.CompactedTokens = 0, situation.PromptTokens, fitted.Tokens
	return newResult(situation, situation.Rendered, fitted), nil
}

// Render renders the thread under a plan that was made for it, or for a shorter version of
// it, and counts the request. A nil plan hides nothing.
func (c *Compactor) Render(p *plan.Plan, q Request) (_ *Result, err error) {
	defer nameCall(&err, "Render", q.Thread.ID())
	situation, err := c.requestSituation(context.Background(), q)
	if err != nil {
		return nil, err
	}
	whole, err := policy.Situate(situation)
	if err != nil {
		return nil, err
	}
	situation.Current = p
	under, err := policy.Situate(situation)
	if err != nil {
		return nil, err
	}
	return newResult(whole, whole.Rendered, under.Rendered), nil
}

// nameCall puts the call that failed before an error.
func nameCall(err *error, call, id string) {
	if *err != nil {
		*err = fmt.Errorf("palimpsest.%s(%s): %w", call, id, *err)
	}
}

// requestSituation is the situation of a single request, without a session.
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
