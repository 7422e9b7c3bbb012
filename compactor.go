package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Compactor makes plans and prompts, for sessions and for single requests. New makes one.
// It is safe for concurrent use. It remembers the token counts of messages, so that
// planning after one more step counts only the new messages.
type Compactor struct {
	config  Config
	model   token.Model    // of Config.Model
	search  *recall.Hybrid // nil without an Embedder
	signing signingKey
	books   store.Documents // the notes of models
}

// New returns a Compactor. The error says which part of the configuration cannot be used.
func New(c Config) (*Compactor, error) {
	model, err := modelOf(c.Model)
	if err == nil && c.Counter == nil {
		c.Counter, err = token.ForModel(model)
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.New: %w", err)
	}
	c.Policy = cmp.Or[policy.Policy](c.Policy, policy.Auto{})
	memory := &store.Memory{}
	c.Store.Log, c.Store.Plans = cmp.Or[store.Log](c.Store.Log, memory), cmp.Or[store.Plans](c.Store.Plans, memory)
	c.Answers = cmp.Or(c.Answers, llm.NewAnswers(c.Store.Answers))
	c.Memory = cmp.Or(c.Memory, NewMemory(0))
	c.Counter = c.Memory.remembering(c.Counter)
	if c.Summarizer == nil {
		c.Summarizer = c.Memory.Summarizer(c.Counter)
	}
	c.Patience = cmp.Or(max(c.Patience, 0), DefaultPatience)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Sign = c.Sign && c.Store.Documents != nil
	out := &Compactor{config: c, model: model, books: cmp.Or[store.Documents](c.Store.Documents, memory)}
	if c.Recall != nil && c.Recall.Embedder != nil {
		out.search = &recall.Hybrid{Embedder: c.Recall.Embedder}
	}
	return out, nil
}

// modelOf is a model of the table; for "" one that only counts, as o200k does.
func modelOf(name string) (token.Model, error) {
	if name == "" {
		return token.Model{Counter: "o200k"}, nil
	}
	return token.Models().Like(name)
}

// Request is one compaction. Thread and Budget are required.
type Request struct {
	Thread *thread.Thread
	// Base gives model, system, tools and the other request parameters; its messages are
	// not used. May be nil.
	Base *prompt.Prompt
	// Budget bounds the whole request (system, tools and messages), in tokens.
	Budget int
	// Window and Output are the model's context window and what is kept free for its
	// answer, in tokens, for policies that go by them; 0 if unknown.
	Window, Output int
	// Note is added to the system prompt once something is removed: how its reader gets it
	// back. It begins with render.RemovedNote and replaces the note of an earlier compaction.
	Note string
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

// Compact fills the budget by the Compactor's policy, and renders the prompt. A thread that
// fits is rendered under an empty plan. An error that wraps policy.ErrOverBudget is a *policy.BudgetError
// and names the parts that do not fit, or says that the policy keeps to rules of its own and
// leaves more, or that the API would refuse what is left, wherever it is cut; the Result is then what it
// leaves, or nil where it removes nothing. Of
// summaries that were asked for in vain, policy.SummariesOf the error has the reports.
func (c *Compactor) Compact(ctx context.Context, q Request) (_ *Result, err error) {
	defer nameCall(&err, "Compact", q.Thread.ID())
	uncounted, err := c.requestSituation(ctx, q)
	if err != nil {
		return nil, err
	}
	uncounted.Namer = c.namer(ctx)
	uncounted.Budget, uncounted.Window, uncounted.Output = q.Budget, q.Window, q.Output
	uncounted.Fill, uncounted.Forced = true, true
	situation, err := policy.Situate(uncounted)
	if err != nil {
		return nil, err
	}
	situation = c.withPrices(q.Thread, q.Thread.Len(), situation)
	situation.Cached, situation.CacheExpired = false, false // nobody was sent it
	p, fitted := c.config.Policy, new(*situation.Rendered)
	if situation.PromptTokens <= q.Budget {
		fitted.Plan = situation.Draft(p.Name())
	} else if fitted, err = p.Plan(ctx, situation); errors.Is(err, policy.ErrNothing) {
		return nil, fmt.Errorf("%w; %w", err, policy.ErrOverBudget)
	} else if err != nil {
		return nil, err
	}
	fitted, refused := makeValid(ctx, p, situation, fitted)
	if errors.Is(refused, errRefusedPlan) { // then the request stays as it is
		fitted = new(*situation.Rendered)
		fitted.Plan, fitted.Summaries = situation.Draft(p.Name()), policy.SummariesOf(nil, refused)
	} else if refused != nil {
		return nil, refused
	}
	res := newResult(situation, situation.Rendered, fitted)
	res.Plan.Round, res.Plan.OriginalTokens, res.Plan.CompactedTokens = 0, res.Before, res.After
	if res.After > q.Budget && refused != nil {
		return res, fmt.Errorf("%w, wherever it is cut: nothing is removed: %w", refused, policy.ErrOverBudget)
	}
	if res.After > q.Budget {
		return res, fmt.Errorf("policy %s keeps to its own rules and leaves %s tokens, over the budget of %s: %w", p.Name(), clip.Number(res.After), clip.Number(q.Budget), policy.ErrOverBudget)
	}
	return res, nil
}

// Render renders the thread under a plan that was made for it, or for a shorter version of
// it, and counts the request. A nil plan hides nothing.
func (c *Compactor) Render(p *plan.Plan, q Request) (_ *Result, err error) {
	defer nameCall(&err, "Render", q.Thread.ID())
	given, err := c.requestSituation(context.Background(), q)
	if err != nil {
		return nil, err
	}
	situation, err := policy.Situate(given)
	if err != nil {
		return nil, err
	}
	under := situation.Rendered
	if p != nil {
		if under, err = situation.Render(p); err != nil {
			return nil, err
		}
	}
	return newResult(situation, situation.Rendered, under), nil
}

// requestSituation is the situation of a single request, without a session.
func (c *Compactor) requestSituation(ctx context.Context, q Request) (policy.Situation, error) {
	sent := *cmp.Or(q.Base, &prompt.Prompt{})
	sent.Model, sent.Messages = cmp.Or(sent.Model, c.config.Model), nil
	base := sent
	if q.Note != "" {
		base.System = slices.DeleteFunc(slices.Clone(base.System), func(s prompt.System) bool { return strings.HasPrefix(s.Text, render.RemovedNote) })
		base.System = append(base.System, prompt.System{Text: q.Note})
	}
	s := c.Session(q.Thread.ID())
	k := s.state()
	defer c.config.Memory.updateSize(s.conversation, k)
	situation, err := c.baseSituation(ctx, q.Thread, &base, q.Profile, k.sizes)
	situation.SentBase, situation.SentFixed = &sent, c.config.Counter.Prompt(&sent)
	if q.Fixed > 0 {
		situation.Fixed, situation.SentFixed = q.Fixed, q.Fixed
	}
	return situation, err
}

// newResult counts the whole thread with the note of the plan, so that both figures have
// the same fixed part.
func newResult(s *policy.Situation, whole, f *policy.Fitted) *Result {
	fixed := s.Fixed
	if f.Prompt == whole.Prompt {
		fixed = s.SentFixed
	}
	return &Result{
		Plan: f.Plan, Prompt: render.Owned(f.Prompt), Manifest: f.Manifest,
		Before: whole.Tokens - s.SentFixed + fixed, After: f.Tokens, Fixed: fixed,
		Sizes: s.PlainSizes, PromptSizes: f.Sizes, Pinned: f.Pinned, Tail: f.Tail, Summaries: f.Summaries,
	}
}
