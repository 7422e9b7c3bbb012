package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/cost"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Auto is our own default. It compacts in batches, so that the prompt's prefix
// stays the same in between: the newest part stays whole, what is older is
// summarized (strategy.Auto).
//
// When: where the prices of the model are known, as soon as a longer prompt would
// cost more than the compaction (package cost: the square-root law, from what the
// steps add, what this one brings and how often the cache lapses); when the
// provider's cache has gone cold, as soon as that saves something; and in any case
// at the hard mark. Without prices the hard mark alone decides.
//
// A result too large to be used at once is put aside as it arrives, before it
// has been paid for, provided that the agent can read it again.
type Auto struct {
	// Hard is the share of what the model can read at which the thread is
	// compacted, Target the largest share that is left afterwards, as ratios. The
	// defaults, 0.9 and 0.5, are where the better agents have settled.
	Hard, Target float64
	// Working is what the messages take after a compaction that prices decided, in
	// tokens. Default 20,000.
	Working int
	// Intake is the size in tokens beyond which a result is put aside as it
	// arrives. Default 20,000 or a tenth of what the model can read, whichever is
	// less, but not under 4,000; a negative number lets everything in.
	Intake int
}

const (
	defaultHard    = 0.9
	defaultTarget  = 0.5
	defaultWorking = 20_000
	defaultIntake  = 20_000
	intakeShare    = 0.1
	leastIntake    = 4_000
	// leastGain is how much larger than after a compaction the prompt must be
	// before prices decide for one, as a ratio: what the law says of a few tokens
	// is not worth a new prefix. A prompt that is forgotten is written anew in any
	// case, so that there almost any gain will do (leastColdGain; on the dev split
	// it saves 1.3 % over leastGain, see docs/evaluation.md).
	leastGain     = 1.2
	leastColdGain = 1.05
	// recent is how many messages the growth of a step is taken from. A step counts
	// as burst tokens at most, and so many steps of the usual growth are added: a
	// conversation begins with reading, and a large file is no sign that the next
	// steps bring as much, so that the plain mean puts the mark too high, the first
	// one most (on the dev split this takes a third of the cost over the best
	// schedule away, see docs/evaluation.md).
	recent      = 200
	burst       = 1_500
	usualGrowth = 500
	usualSteps  = 50
	// harderBy is what the target shrinks by each time that the provider refuses
	// the request all the same: its own count is larger than ours then.
	harderBy = 0.7
)

// Name returns "auto".
func (Auto) Name() string { return "auto" }

// Due reports whether the request has passed the hard mark, or the mark beyond
// which it costs more than a compaction, or holds a new result that is too large.
func (a Auto) Due(s *State) (bool, string) {
	if hard := s.share(or(a.Hard, defaultHard)); hard > 0 && s.Prompt > hard {
		return true, fmt.Sprintf("the request takes %d tokens, the mark is %d of %d", s.Prompt, hard, s.limit())
	}
	if large := a.arrived(s); len(large) > 0 {
		return true, fmt.Sprintf("%d new results are over the limit of %d tokens each", len(large), a.intake(s))
	}
	mark := a.mark(s)
	switch {
	case mark == 0 || s.Prompt <= mark:
		return false, ""
	case s.Cold:
		return true, fmt.Sprintf("the request takes %d tokens, and the provider has forgotten it", s.Prompt)
	}
	return true, fmt.Sprintf("the request takes %d tokens, beyond %d it costs more than a compaction", s.Prompt, mark)
}

// mark is the size of the request beyond which compacting is cheaper than going
// on, in tokens; 0 when prices are not known.
func (a Auto) mark(s *State) int {
	if s.Rates.Read <= 0 {
		return 0
	}
	growth := s.growth()
	after := float64(a.target(s))
	mark := leastColdGain * after
	if !s.Cold {
		mark = leastGain * after
		cycle := cost.Cycle{Growth: growth, After: after, Kept: float64(s.Fixed), New: float64(a.fresh(s)), Lapse: s.Lapse}
		mark = max(mark, after+cycle.Steps(s.Rates)*growth)
	}
	return int(min(mark, 1<<40))
}

// growth is what a step is expected to add, in tokens: what a message of the
// model's and what came back for it have added lately, without bursts, and what
// is usual.
func (s *State) growth() float64 {
	tokens, steps, step := usualGrowth*usualSteps, usualSteps, 0
	for i := s.Thread.Len() - 1; i >= 0 && i >= s.Thread.Len()-recent; i-- {
		step += s.Plain[i]
		if s.Thread.At(i).Role == thread.Assistant {
			tokens += min(step, burst)
			steps++
			step = 0
		}
	}
	return float64(tokens) / float64(steps)
}

// fresh is what no provider has read yet, in tokens: the model's last answer and
// what came after it, without what is put aside as it arrives.
func (a Auto) fresh(s *State) int {
	tokens, answered := 0, false
	aside := a.arrived(s)
	for i := s.Thread.Len() - 1; i >= 0; i-- {
		if assistant := s.Thread.At(i).Role == thread.Assistant; answered && !assistant {
			break
		} else if assistant {
			answered = true
		}
		if !slices.Contains(aside, i) {
			tokens += s.Plain[i]
		}
	}
	return tokens
}

// target is what the request may take after a compaction, in tokens.
func (a Auto) target(s *State) int {
	target := s.share(or(a.Target, defaultTarget))
	if target == 0 {
		target = int(float64(s.Prompt) * or(a.Target, defaultTarget))
	}
	if s.Rates.Read > 0 {
		working := max(or0(a.Working, defaultWorking), wordsShare*s.words())
		target = min(target, s.Fixed+working)
	}
	for range s.Harder {
		target = int(float64(target) * harderBy)
	}
	return target
}

// words is the larger of the user's first and last message, in tokens. A third of
// the room is what they may take before they are shortened, so prices must leave
// three times as much.
func (s *State) words() int {
	first, last := -1, -1
	for i, m := range s.Thread.All() {
		if m.StartsTurn() {
			first = i
			break
		}
	}
	for i := s.Thread.Len() - 1; i >= 0 && last < 0; i-- {
		if s.Thread.At(i).StartsTurn() {
			last = i
		}
	}
	if first < 0 {
		return 0
	}
	return max(s.Plain[first], s.Plain[last])
}

const wordsShare = 3

// intake is the size of a result that is put aside as it arrives, in tokens.
func (a Auto) intake(s *State) int {
	if a.Intake != 0 {
		return a.Intake
	}
	limit := defaultIntake
	if s.limit() > 0 {
		limit = min(limit, max(s.share(intakeShare), leastIntake))
	}
	return limit
}

// arrived are the positions of new results that are to be put aside.
func (a Auto) arrived(s *State) []int {
	limit := a.intake(s)
	if !s.Reachable || limit < 0 || s.Allows != nil && !s.Allows(strategy.Externalize{}.Name()) {
		return nil
	}
	large := strategy.Arrived(s.Thread, s.Plain, limit)
	if s.Current != nil && len(large) > 0 {
		actions := s.Current.Actions()
		large = slices.DeleteFunc(large, func(i int) bool { return actions[s.Thread.At(i).ID].Action != plan.Include })
	}
	return large
}

// Plan puts aside what has arrived too large, when that is enough, or else brings
// the request down to the target.
func (a Auto) Plan(ctx context.Context, s *State) (*Fitted, error) {
	if large := a.arrived(s); len(large) > 0 && !s.Forced {
		f, err := a.admit(s, large)
		if err != nil || f != nil && !a.over(s, f.Tokens) {
			return f, err
		}
	}
	target := a.target(s)
	if s.Whole() <= target {
		return nil, fmt.Errorf("policy auto: the request takes %d tokens with nothing hidden, the target is %d: %w", s.Whole(), target, ErrNothing)
	}
	f, err := Fit(ctx, s, a.Name(), strategy.Auto(), target)
	if s.Harder > 0 {
		return f, err
	}
	// What must stay may be more than prices, or the target, would leave.
	hard := s.share(or(a.Hard, defaultHard))
	for _, more := range []int{s.share(or(a.Target, defaultTarget)), (target + hard) / 2, hard} {
		if !errors.Is(err, ErrOverBudget) {
			break
		}
		if more > target {
			f, err = Fit(ctx, s, a.Name(), strategy.Auto(), more)
		}
	}
	return f, err
}

// over reports whether a request of so many tokens would have to be compacted.
func (a Auto) over(s *State, tokens int) bool {
	hard := s.share(or(a.Hard, defaultHard))
	mark := a.mark(s)
	return hard > 0 && tokens > hard || mark > 0 && tokens > mark
}

// share is a part of what the model can read, in tokens; 0 when that is not
// known.
func (s *State) share(ratio float64) int { return int(float64(s.limit()) * ratio) }

// admit adds to the plan in force what is put aside of new results; it is nil
// when nothing would be gained.
func (a Auto) admit(s *State, large []int) (*Fitted, error) {
	v := strategy.NewView(strategy.Given{
		Thread: s.Thread, Pairs: s.Pairs(), Profile: s.Profile, Count: s.Count, CountText: s.Counter.Text,
		Sizes: s.Plain, Tools: s.Tools, Current: s.Source, Summarizer: s.Summarizer, Name: s.Name,
	})
	records := strategy.Intake(v, large, a.intake(s))
	if len(records) == 0 {
		return nil, nil
	}
	p := s.Draft(a.Name())
	if s.Current != nil {
		p.Externalizations = slices.Clone(s.Current.Externalizations)
		p.Summarizations, p.Clearings, p.Drops, p.Cache = s.Current.Summarizations, s.Current.Clearings, s.Current.Drops, s.Current.Cache
	}
	p.Arrived = p.ThreadVersion - s.Current.Rewritten()
	for _, r := range records {
		p.Add(r)
	}
	f, err := s.Render(p)
	if err != nil {
		return nil, err
	}
	p.CompactedTokens = f.Tokens
	return f, nil
}

// limit is what the model can read: the budget, or what its window leaves
// beside its answer. It is 0 when neither is known.
func (s *State) limit() int {
	if s.Budget > 0 {
		return s.Budget
	}
	return max(0, s.Window-s.Output)
}

func or(x, fallback float64) float64 {
	if x == 0 {
		return fallback
	}
	return x
}
