// Package policy says when a thread is compacted, where it is cut, what happens
// to the old part and how the result looks. A policy is a plain value: its
// fields are its constants, and its zero value holds the documented defaults.
//
// Auto is our own default. Ladder, Session, Timeline, Workstream and Loop keep to
// the rules of five other systems, the seeds A to E of this module; comments
// everywhere name them, and their requirements by number (A7, D11). A policy only decides: a plan is the whole of
// what it gives back.
package policy

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/cost"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// Policy decides about one thread. Implementations are safe for concurrent use.
type Policy interface {
	// Name is the name on the command line and in plans.
	Name() string
	// Due reports whether the thread must be compacted before the model is
	// called, and why, in words for people; they hold nothing of what the
	// conversation said, since events carry them.
	Due(s *State) (due bool, why string)
	// Plan makes the plan that follows s.Current. An error that wraps ErrNothing
	// says that the policy has nothing to compact: the thread goes on as it is.
	Plan(ctx context.Context, s *State) (*Fitted, error)
}

// ErrNothing is wrapped by errors of Plan when there is nothing to compact.
var ErrNothing = errors.New("nothing to compact")

// State is a thread before a model call, and everything that a policy may ask.
// It is read only.
type State struct {
	Thread *thread.Thread
	// Memo renders the thread under Current as render.Render does, at the cost of
	// what is new; nil renders it whole.
	Memo *render.Memo
	// Current is the plan in force, nil when there is none; Round is its version.
	Current *plan.Plan
	Round   int
	// Base is the request around the messages; its messages are not set. Seen is
	// what stood there in the request that the provider has read last and still
	// caches; nil where there is none.
	Base, Seen *prompt.Prompt
	Profile    render.Profile

	Counter *token.Counter
	// Count is Counter.Message, and may remember what it counted.
	Count func(*thread.Message) int
	// Changed are the tokens of the messages of Thread as the profile sends them
	// once a plan has changed something, Plain those when none has.
	Changed, Plain []int
	// Fixed is what system, tools and framing take, in tokens; Prompt what the
	// whole request takes under Current.
	Fixed, Prompt int
	// Window is the model's context window and Output what is kept free for its
	// answer, in tokens. Budget bounds the whole request; 0 leaves it to the
	// policy and the window.
	Window, Output, Budget int
	// Rates are what tokens cost with the model's prompt cache; zero when that is
	// not known. Cold: the provider has forgotten the prompt, so that it is
	// written anew whatever is done to it. Lapse is the chance that it will have
	// forgotten it at the next step, as far as that is known.
	Rates cost.Rates
	Cold  bool
	Lapse float64
	// Reachable: the agent can read again what a plan puts aside.
	Reachable bool

	// Name gives what is put aside its id; nil is artifact.IDOf.
	Name artifact.Namer

	// Forced: the provider refused the request as too long, or somebody asked
	// for a compaction. Harder counts how often that happened in a row.
	Forced bool
	Harder int
	// Instructions are what the user asks this compaction to keep in mind, in
	// words; mostly empty.
	Instructions string
	// Allows says which strategies may be used now, by name; nil allows all. A
	// turn that was shown stored content again puts nothing aside (A11). Where
	// nothing else makes the request fit, the limit goes first.
	Allows func(strategy string) bool

	Summarizer summarize.Summarizer
	Tools      *toolpolicy.Registry
	// Source says what the source of a replayable result looks like now; nil:
	// nobody can tell.
	Source func(thread.ToolCall) (thread.Determinism, bool)
	Now    func() time.Time

	pairs atomic.Pointer[thread.Pairing]
	shown atomic.Pointer[shown]
}

// shown is what Render gave for the plan in force, and for which request around the
// messages: a step asks for it twice, once to know its size and once to send it.
type shown struct {
	plan   *plan.Plan
	base   *prompt.Prompt
	fixed  int
	fitted Fitted
}

// Pairs tells which results answer which calls of the thread.
func (s *State) Pairs() *thread.Pairing {
	if p := s.pairs.Load(); p != nil {
		return p
	}
	p := thread.Pair(s.Thread)
	s.pairs.Store(p)
	return p
}

// render renders the thread under a plan.
func (s *State) render(p *plan.Plan) (*prompt.Prompt, *render.Manifest, error) {
	return s.around(p, s.Base)
}

func (s *State) around(p *plan.Plan, base *prompt.Prompt) (*prompt.Prompt, *render.Manifest, error) {
	if s.Memo != nil && p == s.Current {
		return s.Memo.Render(s.Thread, p, base, &render.Options{Profile: s.Profile})
	}
	return render.Render(s.Thread, p, base, &render.Options{Profile: s.Profile, Pairs: s.Pairs()})
}

// Draft returns an empty plan for the state, dated and named, with the memory
// block of the plan in force.
func (s *State) Draft(policy string) *plan.Plan {
	p := &plan.Plan{
		Schema: plan.SchemaVersion, ThreadID: s.Thread.ID(), ThreadVersion: s.Thread.Version(),
		CreatedAt: s.Now().UTC(), Policy: policy, Counter: s.Counter.Name(), OriginalTokens: s.Whole(),
		Instructions: s.Instructions,
	}
	if s.Current != nil {
		p.Memory = s.Current.Memory
	}
	return p
}

// Whole is what the messages, system and tools take with nothing hidden and
// nothing put right, in tokens.
func (s *State) Whole() int {
	total := s.Fixed
	for _, size := range s.Plain {
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
	// Fallback names what was done in place of what was planned
	// ("truncation_note", "extractive"), and Failure says why; both are zero otherwise.
	Fallback string
	Failure  error
	// Proposals are what a ladder proposed on the way to the plan, executed or
	// not; nil for policies whose records are their proposals.
	Proposals []strategy.Proposal
}

// Render renders a plan over the state, and counts. Messages that stand as they
// are in the log are not counted again. A nil plan hides nothing. Neither the prompt
// nor the sizes must be written to.
func (s *State) Render(p *plan.Plan) (*Fitted, error) {
	if last := s.shown.Load(); last != nil && last.plan == p && last.base == s.Base && last.fixed == s.Fixed {
		f := last.fitted
		if p == nil {
			f.Plan = s.Draft("")
		}
		return &f, nil
	}
	f, err := s.fitted(p)
	if err == nil && p == s.Current {
		s.shown.Store(&shown{p, s.Base, s.Fixed, *f})
	}
	return f, err
}

func (s *State) fitted(p *plan.Plan) (*Fitted, error) {
	out, manifest, err := s.render(p)
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = s.Draft("")
	}
	rewritten := p.Rewritten()
	f := &Fitted{Plan: p, Prompt: out, Manifest: manifest, Sizes: make([]int, len(out.Messages)), Tokens: s.Fixed}
	next := 0 // where in the log the next message stands, mostly
	for n := range out.Messages {
		o, m := manifest.Messages[n], &out.Messages[n]
		i, ok := next, next < s.Thread.Len() && s.Thread.At(next).ID == o.ID
		if !ok {
			i, ok = s.Thread.Index(o.ID)
		}
		switch {
		case !ok || o.Record.Action != plan.Include || o.Synthetic:
			f.Sizes[n] = s.Count(m)
		case i < rewritten:
			f.Sizes[n] = s.Changed[i]
		case rewritten == 0 || sameParts(m.Parts, s.Thread.At(i).Parts):
			f.Sizes[n] = s.Plain[i]
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
