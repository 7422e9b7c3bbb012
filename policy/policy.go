// Package policy says when a thread is compacted, where it is cut, what happens
// to the old part and how the result looks. A policy is a plain value: its
// fields are its constants, and its zero value holds the documented defaults.
//
// A policy is asked once for a step. It sees one Situation, a value that is never
// changed, and answers with nothing or with a plan that follows the one in force; who
// asked puts that into force. Policies keep nothing between steps and may be used by
// many sessions at once.
//
// Auto is our own default. Ladder, Session, Timeline, Workstream and Loop keep to
// the rules of five other systems, the seeds A to E of this module; comments
// name them, and their requirements by number.
package policy

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/cost"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// Policy decides about one step of one session. Implementations are safe for
// concurrent use.
type Policy interface {
	// Name is the name on the command line and in plans.
	Name() string
	// Due reports whether the session must be compacted before the model is
	// called, and why, in words for people; they hold nothing of what the
	// conversation said, since events carry them.
	Due(s *Situation) (due bool, why string)
	// Plan makes the plan that follows s.Current. It may ask a model for summaries,
	// and does nothing else that can be seen from outside. An error that wraps
	// ErrNothing says that there is nothing to compact: the step goes on under
	// s.Current. Any other error is told as a failure, and the step goes on all the
	// same.
	Plan(ctx context.Context, s *Situation) (*Fitted, error)
}

// Bounded is implemented by policies that bound a request themselves, whatever
// the model's window.
type Bounded interface {
	// Limit is the largest request that the policy allows, in tokens; 0 leaves it
	// to the step's budget and window.
	Limit(s *Situation) int
}

// Windowed is implemented by policies that know a model's window better than who
// asks: where a flag opens a longer one than the table of models has.
type Windowed interface {
	// ContextWindow is the context window for the step, in tokens.
	ContextWindow(s *Situation) int
}

// Background is implemented by policies that let a compaction be prepared beside the
// agent, before it must be. Without a queue of jobs it is not asked.
type Background interface {
	// DueSoon reports whether a compaction should be prepared now, and why, in words
	// for people.
	DueSoon(s *Situation) (soon bool, why string)
	// WaitsForJobs reports whether every request of a thread waits for a compaction
	// that is being prepared; otherwise only those do that must not be sent
	// without one.
	WaitsForJobs() bool
}

// Caching is implemented by policies whose rule for cache marks holds from the first
// request on, before there is a plan.
type Caching interface {
	CacheRule() *plan.CacheRule
}

// Reserving is implemented by policies that keep room free for content that is
// brought back.
type Reserving interface {
	// Reserve is that room in tokens, and how many artifacts may be brought back
	// at a time; 0 is none of either.
	Reserve(s *Situation) (tokens, artifacts int)
}

var (
	_ Bounded    = Ladder{}
	_ Bounded    = Session{}
	_ Bounded    = Timeline{}
	_ Bounded    = Workstream{}
	_ Bounded    = Loop{}
	_ Windowed   = Loop{}
	_ Background = Auto{}
	_ Background = Workstream{}
	_ Reserving  = Ladder{}
	_ Caching    = Timeline{}
)

// As returns the policy as a T: itself, or, where it wraps another and says so by
// a method Unwrap() Policy, the first inside that is one.
func As[T any](p Policy) (found T, ok bool) {
	for p != nil {
		if found, ok = p.(T); ok {
			return found, true
		}
		outer, wraps := p.(interface{ Unwrap() Policy })
		if !wraps {
			break
		}
		p = outer.Unwrap()
	}
	return found, false
}

// ErrNothing is wrapped by errors of Plan when there is nothing to compact.
var ErrNothing = errors.New("nothing to compact")

// Situation is a session before a model call, and everything that a policy may
// ask. It is built once for a step (see Situate) and never changed after, so that it
// may be read from several goroutines. Thread, Base, Counter, Count, ChangedSizes and PlainSizes
// must be set; the zero value of any other field is a situation without it.
type Situation struct {
	Thread *thread.Thread
	// Memo renders the thread under Current as render.Render does, at the cost of
	// what is new; nil renders it whole.
	Memo *render.Memo
	// Current is the plan in force, nil when there is none. Round counts the
	// compactions so far, and not the plans: undoing one is none.
	Current *plan.Plan
	Round   int
	// Base is the request around the messages as it will be under the next plan;
	// its messages are not set. SentBase is the one around them now, under Current: it
	// lacks the tools that the first plan brings along. Nil stands for Base. Cached
	// reports whether the provider was sent it and may still hold it in its cache.
	Base, SentBase *prompt.Prompt
	Cached         bool
	Profile        render.Profile
	// CacheRule says where cache marks go while no plan says so; nil leaves them to
	// the caller (see Caching).
	CacheRule *plan.CacheRule

	Counter *token.Counter
	// Count is Counter.Message, and may remember what it counted.
	Count func(*thread.Message) int
	// CountText is Counter.Text, and may remember what it counted; nil is Counter.Text.
	CountText func(string) int
	// Estimates remembers the estimate of seed B; nil estimates anew each time.
	Estimates *Estimates
	// ChangedSizes are the tokens of the messages of Thread as the profile sends them
	// once a plan has changed something, PlainSizes those when none has.
	ChangedSizes, PlainSizes []int
	// Fixed is what system, tools and framing of Base take, in tokens, SentFixed
	// those of SentBase.
	Fixed, SentFixed int
	// Rendered is the request under Current, PromptTokens what all of it takes, and
	// MessageTokens what its messages take, in tokens. Situate sets all three.
	Rendered                    *Fitted
	PromptTokens, MessageTokens int
	// Window is the model's context window and Output what is kept free for its
	// answer, in tokens. Budget bounds the whole request; 0 leaves it to the
	// policy and the window.
	Window, Output, Budget int
	// Rates are what tokens cost with the model's prompt cache; zero when that is
	// not known. CacheExpired: the provider has forgotten the prompt, so that it is
	// written anew whatever is done to it. ExpiryChance is the chance that it will have
	// forgotten it at the next step, as far as that is known.
	Rates        cost.Rates
	CacheExpired bool
	ExpiryChance float64
	// CacheLife is for how long the provider keeps a prompt in its cache; 0 where that
	// is not known.
	CacheLife time.Duration

	// Namer gives what is externalized its id; nil is artifact.IDOf.
	Namer artifact.Namer

	// Forced: the provider refused the request as too long, or somebody asked
	// for a compaction. Refusals counts how often this step was refused in a row.
	Forced   bool
	Refusals int
	// Attempt is which attempt of a background job this is, from 1, of Attempts in
	// all; both are 0 in a step, which has only one. Before the last a summarizer
	// that fails is a failure of the plan: the job is done again.
	Attempt, Attempts int
	// Instructions are what the user asks this compaction to keep in mind, in
	// words; mostly empty.
	Instructions string
	// Rehydrated is what was brought back for this turn. A turn that was shown
	// stored content again externalizes nothing more, unless nothing else
	// makes the request fit.
	Rehydrated rehydrate.TurnContext

	// Summarizer makes the summaries of ladders. Policies with a form of their own
	// ask their own model.
	Summarizer summarize.Summarizer
	// Answers has what models answered before, so that none is asked the same
	// twice; nil asks every time.
	Answers *llm.Answers
	// Tools declares how durable results are; nil holds the built-in declarations.
	Tools *toolpolicy.Registry
	// CurrentSource says what the source of a replayable result looks like now; nil:
	// nobody can tell.
	CurrentSource func(thread.ToolCall) (thread.Determinism, bool)
	// Now is the time of the step.
	Now time.Time

	pairs func() *thread.Pairing // nil: found each time
}

// Situate completes a situation with the request under the plan in force: what it
// is, and what it takes. The error says that this plan does not hold for the thread.
func Situate(given Situation) (*Situation, error) {
	s := &given
	t := given.Thread
	s.pairs = sync.OnceValue(func() *thread.Pairing { return thread.Pair(t) })
	if s.SentBase == nil {
		s.SentBase, s.SentFixed = s.Base, s.Fixed
	}
	if s.CountText == nil {
		s.CountText = s.Counter.Text
	}
	s.Rendered = nil
	f, err := s.Render(s.Current)
	if err != nil {
		return nil, err
	}
	s.Rendered, s.PromptTokens, s.MessageTokens = f, f.Tokens, f.Tokens-s.SentFixed
	return s, nil
}

// WithRehydrated returns the situation with what was brought back for the turn.
func (s *Situation) WithRehydrated(returned rehydrate.TurnContext) *Situation {
	next := *s
	next.Rehydrated = returned
	return &next
}

// Pairs tells which results answer which calls of the thread.
func (s *Situation) Pairs() *thread.Pairing {
	if s.pairs == nil {
		return thread.Pair(s.Thread)
	}
	return s.pairs()
}

// baseRequest is what stands around the messages under a plan, and what it takes.
func (s *Situation) baseRequest(p *plan.Plan) (*prompt.Prompt, int) {
	if p == s.Current && s.SentBase != nil {
		return s.SentBase, s.SentFixed
	}
	return s.Base, s.Fixed
}

// render renders the thread under a plan.
func (s *Situation) render(p *plan.Plan) (*prompt.Prompt, *render.Manifest, error) {
	base, _ := s.baseRequest(p)
	if s.Memo != nil && p == s.Current {
		return s.Memo.Render(s.Thread, p, base, &render.Options{Profile: s.Profile, Cache: s.CacheRule})
	}
	return render.Render(s.Thread, p, base, &render.Options{Profile: s.Profile, Pairs: s.Pairs(), Cache: s.CacheRule})
}

// currentRequest is the request under the plan in force.
func (s *Situation) currentRequest() (*prompt.Prompt, *render.Manifest, error) {
	if s.Rendered != nil {
		return s.Rendered.Prompt, s.Rendered.Manifest, nil
	}
	return s.render(s.Current)
}

// Draft returns an empty plan for the situation, dated and named: the next round,
// with the memory block of the plan in force.
func (s *Situation) Draft(policy string) *plan.Plan {
	p := &plan.Plan{
		Schema: plan.SchemaVersion, ThreadID: s.Thread.ID(), ThreadVersion: s.Thread.Version(),
		CreatedAt: s.Now.UTC(), Round: s.Round + 1, Refused: s.Refusals, Policy: policy, Counter: s.Counter.Name(), OriginalTokens: s.UncompactedTokens(),
		Instructions: s.Instructions,
	}
	if s.Current != nil {
		p.Memory, p.Pinned = s.Current.Memory, s.Current.Pinned
	}
	return p
}

// pinnedPositions are the positions of the messages that the user has pinned.
func (s *Situation) pinnedPositions() []int {
	if s.Current == nil {
		return nil
	}
	var at []int
	for _, id := range s.Current.Pinned {
		if i, ok := s.Thread.Index(id); ok {
			at = append(at, i)
		}
	}
	return at
}

// UncompactedTokens is what the messages, system and tools take with nothing hidden and
// nothing put right, in tokens.
func (s *Situation) UncompactedTokens() int {
	total := s.Fixed
	for _, size := range s.PlainSizes {
		total += size
	}
	return total
}

// Fitted is a plan and what it comes to.
type Fitted struct {
	Plan     *plan.Plan
	Prompt   *prompt.Prompt
	Manifest *render.Manifest
	// Sizes are the tokens of the messages of Prompt, Tokens those of the whole
	// request.
	Sizes  []int
	Tokens int
	// Pinned are the positions of the messages of the thread that the plan was
	// not allowed to touch, Tail is where the protected newest part begins; nil
	// and 0 where the policy pins nothing.
	Pinned []int
	Tail   int
	// Summaries are the reports of the summaries that were asked for on the way to
	// the plan, in order; more may be made than the plan holds.
	Summaries []summarize.Report
	// Overlaps say which messages several records wanted, and which of these holds
	// (plan.Normalize); empty for plans of our own policies.
	Overlaps []string
	// Proposals are what a ladder proposed on the way to the plan, executed or
	// not; nil for policies whose records are their proposals.
	Proposals []strategy.Proposal
}

// Fallback names who wrote a summary because somebody else could not ("extractive",
// "truncation_note", or another model), and why that one failed: the first of the
// plan's summaries of which that is true. It is empty where there is none.
func (f *Fitted) Fallback() (by string, failure error) {
	for _, r := range f.Summaries {
		if len(r.Failures) > 0 {
			return r.By, r.Failures[0].Err
		}
	}
	return "", nil
}

// Cache says whether all answers of models that the plan took were known: Miss
// when one was asked, empty where none had to be.
func (f *Fitted) Cache() event.Cache {
	var all summarize.Report
	for _, r := range f.Summaries {
		all = all.With(r)
	}
	return all.Cache
}

// Render renders a plan over the thread, and counts. Where records overlap, the one of
// higher precedence holds, and Fitted.Overlaps says so. Messages that stand as they
// are in the log are not counted again. A nil plan hides nothing. Neither the prompt
// nor the sizes must be written to.
func (s *Situation) Render(p *plan.Plan) (*Fitted, error) {
	if p == s.Current && s.Rendered != nil {
		return s.Rendered, nil
	}
	var overlaps []string
	if p != nil && p != s.Current {
		if one, warnings := p.Normalize(); len(warnings) > 0 {
			p, overlaps = &one, warnings
		}
	}
	out, manifest, err := s.render(p)
	if err != nil {
		return nil, err
	}
	_, fixed := s.baseRequest(p)
	if p == nil {
		p = s.Draft("")
	}
	rewritten := p.Rewritten()
	f := &Fitted{Plan: p, Overlaps: overlaps, Prompt: out, Manifest: manifest, Sizes: make([]int, len(out.Messages)), Tokens: fixed}
	next := 0 // where in the log the next message stands, mostly
	for n := range out.Messages {
		o, m := manifest.Messages[n], &out.Messages[n]
		i, ok := next, next < s.Thread.Len() && uncopied.At(s.Thread, next).ID == o.ID
		if !ok {
			i, ok = s.Thread.Index(o.ID)
		}
		switch {
		case !ok || o.Record.Action != plan.Include || o.Synthetic:
			f.Sizes[n] = s.Count(m)
		case i < rewritten:
			f.Sizes[n] = s.ChangedSizes[i]
		case rewritten == 0 || sameParts(m.Parts, uncopied.At(s.Thread, i).Parts):
			f.Sizes[n] = s.PlainSizes[i]
		default: // the tool loop that was under way lost its reasoning
			f.Sizes[n] = s.Count(m)
		}
		if ok {
			next = i + 1
		}
		f.Tokens += f.Sizes[n]
	}
	return f, nil
}

// sameParts reports whether the parts of a message are those of another, and not
// only like them.
func sameParts(a, b []thread.Part) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
