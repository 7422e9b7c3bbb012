// Package policy decides when a thread is compacted, where it is cut, what happens to the
// old part, and how the result looks. A policy is a plain value: its fields are its
// constants, and its zero value has the documented defaults.
//
// A policy is asked once per step. It gets a Situation, which never changes, and answers
// with nothing or with a plan that follows the one in force; the caller puts that plan
// into force. Policies keep nothing between steps, and many sessions may share one.
//
// Auto is our own default, and Notes has its marks. Ladder, Session, Timeline, Workstream and Loop follow the rules
// of five other systems, called seeds A to E in comments.
package policy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Policy decides about one step of one session. Implementations are safe for concurrent
// use.
type Policy interface {
	// Name is the policy's name on the command line and in plans.
	Name() string
	// Due reports whether the session must be compacted before the model is called, and
	// why, in a sentence for people. The sentence goes into events, so it must not contain
	// anything of the conversation.
	Due(s *Situation) (due bool, why string)
	// Plan makes the plan that follows s.Current. It may ask a model for summaries, and
	// has no other side effects. An error that wraps ErrNothing says that there is nothing
	// to compact: the step continues under s.Current. So it does after any other error,
	// which is reported as a failure. A *FailedError also reports the summaries that were
	// asked for.
	Plan(ctx context.Context, s *Situation) (*Fitted, error)
}

// Bounded is implemented by policies with a limit of their own on requests, whatever the
// model's window.
type Bounded interface {
	// Limit is the largest request that the policy allows, in tokens; 0 leaves it to the
	// step's budget and window.
	Limit(s *Situation) int
}

// Windowed is implemented by policies that know the model's window better than the caller,
// such as one with a flag for a longer window.
type Windowed interface {
	// ContextWindow is the context window for the step, in tokens.
	ContextWindow(s *Situation) int
}

// Background is implemented by policies that let a compaction be prepared in the
// background before it is due. It is used only with a queue of jobs.
type Background interface {
	// DueSoon reports whether a compaction should be prepared now, and why, in a sentence
	// for people.
	DueSoon(s *Situation) (soon bool, why string)
	// WaitsForJobs reports whether every request of a thread waits for a compaction in the
	// background. Otherwise only requests wait that must not be sent without one.
	WaitsForJobs() bool
}

// Caching is implemented by policies whose rule for cache marks also holds before the
// first plan.
type Caching interface {
	CacheRule() *plan.CacheRule
}

// Reserving is implemented by policies that reserve room for content that is brought back.
type Reserving interface {
	// Reserve is that room in tokens, and how many artifacts may be brought back at a
	// time; 0 is none.
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
	_ Background = Notes{}
	_ Background = Workstream{}
	_ Reserving  = Ladder{}
	_ Caching    = Timeline{}
)

// As finds a T in the policy: the policy itself or, where it wraps another one and has a
// method Unwrap() Policy, the first inside it.
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

// Situation is a session before a model call: everything that a policy may ask. It is
// built once per step (see Situate) and never changed after, so it may be read from
// several goroutines. Thread, Base, Counter, ChangedSizes and PlainSizes are required.
type Situation struct {
	Thread *thread.Thread
	// Memo renders the thread under Current like render.Render, but only what is new; nil
	// renders all of it.
	Memo *render.Memo
	// Current is the plan in force, nil for none. Round counts the compactions so far; an
	// undo is none.
	Current *plan.Plan
	Round   int
	// Keep are positions of messages that the next plan must leave alone, as pinned ones: the
	// API would refuse one that did not. Mostly nil.
	Keep []int
	// Base is the request around the messages under the next plan, without messages.
	// SentBase is the one under Current: it lacks the tools that come with the first plan.
	// Nil stands for Base. Cached reports whether the provider was sent it and may still
	// have it in its cache.
	Base, SentBase *prompt.Prompt
	Cached         bool
	Profile        render.Profile
	// CacheRule says where cache marks go while no plan does (see Caching); nil leaves
	// them to the caller.
	CacheRule *plan.CacheRule

	// Counter counts the same texts again and again, so let it remember them.
	Counter *token.Counter
	// Correction is the factor that Counter's figures were multiplied with, since the
	// provider counts so much more; 0 is none. Summarizers count without it.
	Correction float64
	// Estimates remembers the estimates of Session; nil estimates anew each time.
	Estimates *Estimates
	// ChangedSizes are the tokens of the thread's messages as the profile sends them once
	// a plan has changed something, PlainSizes those under no plan.
	ChangedSizes, PlainSizes []int
	// LogSize is at least what the messages of the thread take beside their tokens, under no
	// plan; the zero value is not known.
	LogSize wire.Size
	// Fixed is what system, tools and framing of Base take, in tokens; SentFixed is that
	// of SentBase.
	Fixed, SentFixed int
	// Rendered is the request under Current, PromptTokens its size, and MessageTokens that
	// of its messages, in tokens. Situate sets all three.
	Rendered                    *Fitted
	PromptTokens, MessageTokens int
	// Window is the model's context window, and Output what is kept free for its answer,
	// in tokens. Budget bounds the whole request; 0 leaves it to policy and window.
	Window, Output, Budget int
	// Rates are the token prices with the model's prompt cache; zero if unknown.
	// CacheExpired says that the provider has forgotten the prompt, so it will be written
	// anew in any case. ExpiryChance is the chance that it will have forgotten it by the
	// next step.
	Rates        token.Rates
	CacheExpired bool
	ExpiryChance float64
	// CacheLife is how long the provider caches a prompt; 0 if unknown.
	CacheLife time.Duration

	// Namer makes the ids of externalized content; nil is artifact.IDOf.
	Namer artifact.Namer

	// Forced says that the provider refused the request as too long, or that somebody
	// asked for a compaction. Refusals counts how often this step was refused in a row, and
	// Refusal says why the last time, as far as it is known.
	Forced   bool
	Refusals int
	Refusal  llm.Kind
	// Fill says that somebody asked for a request of Budget tokens: policies with a ladder
	// fill it, and their own targets do not count.
	Fill bool
	// Attempt is the attempt of a background job, from 1, out of Attempts; both are 0 in a
	// step. Before the last attempt a failed summarizer fails the plan, and the job runs
	// again.
	Attempt, Attempts int
	// Instructions are what somebody asks this compaction to keep in mind, mostly empty, and
	// InstructionsBy is who: empty is the user, else the assistant.
	Instructions   string
	InstructionsBy thread.Role
	// Notes are the model's, for the next plan; nil takes over those of Current.
	Notes []plan.Note
	// Rewritten is how many messages hold reasoning that is no longer valid for a reason that
	// is in no plan (see render.Options).
	Rewritten int
	// Rehydrated is what was brought back for this turn. Such a turn externalizes nothing,
	// unless nothing else makes the request fit.
	Rehydrated recall.TurnContext

	// Summarizer writes the summaries of ladders. The other policies ask their own model.
	Summarizer summarize.Summarizer
	// Answers caches what models answered; nil asks every time.
	Answers *llm.Answers
	// Tools declares how durable results are; nil holds the built-in declarations.
	Tools *toolpolicy.Registry
	// CurrentSource describes the source of a replayable result as it is now; nil if
	// unknown.
	CurrentSource func(thread.ToolCall) (thread.Determinism, bool)
	// Now is the time of the step.
	Now time.Time

	pairs func() *thread.Pairing // nil: found each time
}

// Situate completes a situation with the request under the plan in force, and its size.
// The error says that this plan does not hold for the thread.
func Situate(given Situation) (*Situation, error) {
	s := &given
	t := given.Thread
	s.pairs = sync.OnceValue(func() *thread.Pairing { return thread.Pair(t) })
	if s.SentBase == nil {
		s.SentBase, s.SentFixed = s.Base, s.Fixed
	}
	s.Rendered = nil
	f, err := s.Render(s.Current)
	if err != nil {
		return nil, err
	}
	s.Rendered, s.PromptTokens, s.MessageTokens = f, f.Tokens, f.Tokens-s.SentFixed
	return s, nil
}

// Pairs tells which results answer which calls of the thread.
func (s *Situation) Pairs() *thread.Pairing {
	if s.pairs == nil {
		return thread.Pair(s.Thread)
	}
	return s.pairs()
}

// baseRequest is the request around the messages under a plan, and its size.
func (s *Situation) baseRequest(p *plan.Plan) (*prompt.Prompt, int) {
	if p == s.Current && s.SentBase != nil {
		return s.SentBase, s.SentFixed
	}
	return s.Base, s.Fixed
}

// render renders the thread under a plan, the one in force once.
func (s *Situation) render(p *plan.Plan) (*prompt.Prompt, *render.Manifest, error) {
	if p == s.Current && s.Rendered != nil {
		return s.Rendered.Prompt, s.Rendered.Manifest, nil
	}
	base, _ := s.baseRequest(p)
	if s.Memo != nil && p == s.Current {
		return s.Memo.Render(s.Thread, p, base, &render.Options{Profile: s.Profile, Cache: s.CacheRule, Rewritten: s.Rewritten, Shared: true})
	}
	return render.Render(s.Thread, p, base, &render.Options{Profile: s.Profile, Pairs: s.Pairs(), Cache: s.CacheRule, Rewritten: s.Rewritten, Shared: true})
}

// Draft returns an empty plan for the next round, dated, named, and with the memory block,
// pins, notes and last edit of the plan in force.
func (s *Situation) Draft(policy string) *plan.Plan {
	p := &plan.Plan{
		Schema: plan.SchemaVersion, ThreadID: s.Thread.ID(), ThreadVersion: s.Thread.Version(),
		CreatedAt: s.Now.UTC(), Round: s.Round + 1, Refused: s.Refusals, Policy: policy, Counter: s.Counter.Name(), OriginalTokens: s.UncompactedTokens(),
	}
	if s.InstructionsBy == "" {
		p.Instructions = s.Instructions
	}
	if s.Current != nil {
		p.Edited, p.Memory, p.Pinned, p.Notes = s.Current.Edited, s.Current.Memory, s.Current.Pinned, s.Current.Notes
	}
	if s.Notes != nil {
		p.Notes = s.Notes
	}
	return p
}

// keepCleared takes over what the client has cleared by itself, as far as the plan leaves it alone.
func (s *Situation) keepCleared(p *plan.Plan) {
	actions := p.Actions()
	for _, record := range s.Current.Records() {
		if r, ok := record.(plan.Clearing); ok && r.Strategy == injected.ByClient && actions[r.Span.First()].Action == plan.Include {
			p.Add(r)
		}
	}
}

// pinnedPositions are the positions of the messages that the user has pinned, or that Keep names.
func (s *Situation) pinnedPositions() []int {
	at := slices.Clone(s.Keep)
	if s.Current == nil {
		return at
	}
	for _, id := range s.Current.Pinned {
		if i, ok := s.Thread.Index(id); ok {
			at = append(at, i)
		}
	}
	return at
}

// UncompactedTokens is the size of the request with nothing hidden, in tokens.
func (s *Situation) UncompactedTokens() int {
	total := s.Fixed
	for _, size := range s.PlainSizes {
		total += size
	}
	return total
}

// Fitted is a plan and the prompt it gives.
type Fitted struct {
	Plan     *plan.Plan
	Prompt   *prompt.Prompt
	Manifest *render.Manifest
	// Sizes are the tokens of the messages of Prompt, Tokens those of the whole request.
	Sizes  []int
	Tokens int
	// Pinned are the positions of the messages that the plan had to leave alone. Tail is
	// where the protected newest part begins. Both are zero where the policy pins nothing.
	Pinned []int
	Tail   int
	// Summaries are the reports of all summaries that were asked for, in order, also of
	// those that the plan does not use.
	Summaries []summarize.Report
	// Overlaps describe which messages several records wanted (plan.Normalize); empty for
	// plans of our own policies.
	Overlaps []string
	// Proposals are what a ladder proposed, executed or not; nil for policies whose
	// records are their proposals.
	Proposals []strategy.Proposal
}

// Fallback names who wrote a summary in place of another ("extractive", "truncation_note",
// or another model), and why that one failed, for the first of the summaries that has a
// fallback.
func (f *Fitted) Fallback() (by string, failure error) {
	for _, r := range f.Summaries {
		if len(r.Failures) > 0 {
			return r.By, r.Failures[0].Err
		}
	}
	return "", nil
}

// Cache says whether all answers of models were cached: Miss when one was not, empty where
// no model was needed.
func (f *Fitted) Cache() event.Cache {
	var all summarize.Report
	for _, r := range f.Summaries {
		all = all.With(r)
	}
	return all.Cache
}

// Render renders a plan over the thread, and counts. Where records overlap, precedence
// decides and Fitted.Overlaps says so. Messages that are sent as they are in the log are
// not counted again. A nil plan hides nothing. Neither the prompt nor the sizes may be
// modified.
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
	rewritten := max(p.Rewritten(), s.Rewritten)
	f := &Fitted{Plan: p, Overlaps: overlaps, Prompt: out, Manifest: manifest, Sizes: make([]int, len(out.Messages)), Tokens: fixed}
	next := 0 // where in the log the next message stands, mostly
	for n := range out.Messages {
		o, m := manifest.Messages[n], &out.Messages[n]
		i, ok := next, next < s.Thread.Len() && s.Thread.At(next).ID == o.ID
		if !ok {
			i, ok = s.Thread.Index(o.ID)
		}
		switch {
		case !ok || o.Record.Action != plan.Include || o.Synthetic:
			f.Sizes[n] = s.Counter.Message(m)
		case i < rewritten:
			f.Sizes[n] = s.ChangedSizes[i]
		case rewritten == 0 || sameParts(m.Parts, s.Thread.At(i).Parts):
			f.Sizes[n] = s.PlainSizes[i]
		default: // the tool loop that was under way lost its reasoning
			f.Sizes[n] = s.Counter.Message(m)
		}
		if ok {
			next = i + 1
		}
		f.Tokens += f.Sizes[n]
	}
	return f, nil
}

// sameParts reports whether two messages share their parts, not only equal ones.
func sameParts(a, b []thread.Part) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
