package palimpsest

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/cost"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// how says what a step asks for beside its prompt.
type how struct {
	forced       bool         // compact, whether it is due or not
	refused      int          // how often the provider has refused the step
	instructions string       // what the user wants summaries to keep in mind
	usage        *calibration // what the provider counted, as a job was told

	attempt, attempts int // of a job; both 0 in a step
}

// situate makes the value that policies decide on: what was loaded, counted as
// the provider counts, with limits, prices and the time.
func (s *Session) situate(ctx context.Context, l loaded, step Step, how how) (*policy.Situation, error) {
	given, err := s.given(ctx, l, step, how)
	if err != nil {
		return nil, err
	}
	usage := *cmp.Or(how.usage, &l.usage)
	at, err := policy.Situate(corrected(given, usage.factor(l.log.Len(), l.version)))
	if err != nil && l.plan != nil {
		// The plan does not hold for the log any more: it is left aside.
		s.emit(ctx, event.Event{Type: event.Failed, Err: event.ErrorClass(err), Details: map[string]any{"fallback": "passthrough"}})
		given.Current = nil
		at, err = policy.Situate(corrected(given, usage.factor(l.log.Len(), l.version)))
	}
	if err != nil {
		return nil, err
	}
	if measured, changed := s.measure(ctx, l, at); changed {
		if at, err = policy.Situate(corrected(given, measured.factor(l.log.Len(), l.version))); err != nil {
			return nil, err
		}
	}
	return s.priced(l, at), nil
}

// given is the situation in the figures of the counter.
func (s *Session) given(ctx context.Context, l loaded, step Step, how how) (policy.Situation, error) {
	reach := s.reach(step)
	sent := s.around(step, l, reach == render.Tools && s.offered())
	next := s.around(step, l, reach == render.Tools)
	given, err := s.c.given(ctx, l.log, next, s.profile(step), s.cached().sizes)
	if err != nil {
		return given, err
	}
	given.Sent, given.SentFixed = sent, s.c.stands.Prompt(sent)
	if step.Fixed > 0 {
		given.Fixed, given.SentFixed = step.Fixed, step.Fixed
	}
	given.Name = s.c.namer(ctx)
	if p, ok := policy.As[policy.Caching](s.c.config.Policy); ok {
		given.CacheRule = p.CacheRule()
	}
	given.Current, given.Round = l.plan, l.round
	given.Window, given.Output, given.Budget = step.Window, step.Output, step.Budget
	given.Forced, given.Harder, given.Instructions = how.forced, how.refused, how.instructions
	given.Attempt, given.Attempts = how.attempt, how.attempts
	given.Answers = given.Answers.For(step.Agent)
	return given, nil
}

// reach is how the reader of the step's prompt gets at what was removed: by the
// tools of Config.Recall, unless the step's profile says otherwise.
func (s *Session) reach(step Step) render.Reach {
	switch reach := step.Profile.Reach; {
	case s.c.config.Recall != nil && reach == "":
		return render.Tools
	case reach == "" || s.c.config.Recall == nil && reach == render.Tools:
		return render.Nowhere
	default:
		return reach
	}
}

// profile is the step's, with how the reader gets at what was removed. Tools are
// the default, and stay unsaid.
func (s *Session) profile(step Step) render.Profile {
	p := step.Profile
	p.Key = s.c.signing.known()
	if p.Reach = s.reach(step); p.Reach == render.Tools {
		p.Reach = ""
	}
	return p
}

// around is the request around the messages: the step's, with the memory block
// behind its system prompt, and with the tools that reach what was removed.
func (s *Session) around(step Step, l loaded, offered bool) *prompt.Prompt {
	base := *cmp.Or(step.Base, &prompt.Prompt{})
	base.Messages = nil
	if l.plan != nil && l.plan.Memory != nil {
		if text := l.plan.Memory.Render(); text != "" {
			base.System = append(slices.Clone(base.System), prompt.System{Text: text})
		}
	}
	if offered {
		base.Tools = s.withTools(base.Tools)
	}
	return &base
}

// given is what a policy needs to know of a log before a request, whoever keeps
// the log.
func (c *Compactor) given(ctx context.Context, t *thread.Thread, base *prompt.Prompt, profile render.Profile, sizes *sizes) (policy.Situation, error) {
	known := sizes.counts(profile, c.config.Counter)
	changed, plain, err := known.sizes(ctx, t)
	if err != nil {
		return policy.Situation{}, err
	}
	return policy.Situation{
		Thread: t, Memo: &known.memo, Base: base, Profile: profile,
		Counter: c.config.Counter, Count: c.stands.Message, CountText: c.config.Memory.Summarizer(c.config.Counter).Counter, Estimates: &known.estimates, Fixed: c.stands.Prompt(base),
		Changed: changed, Plain: plain,
		Summarizer: c.config.Summarizer, Answers: c.config.Answers, Tools: c.config.Tools, Source: c.source(t), Now: c.config.Now(),
	}, nil
}

// namer gives ids to what plans externalize. Where the keys that it needs are not
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

// priced is a situation with what the tokens of its model cost, whether the
// provider has forgotten the prompt since it last read one, and the chance that it
// will have done so by the next step. With Config.IgnorePrices, or for a model
// that the table of package token does not hold, there are no prices.
func (s *Session) priced(l loaded, at *policy.Situation) *policy.Situation {
	out := *at
	last := lastRead(l.log, l.first)
	out.Cached = !last.IsZero()
	m, err := token.Models().Find(at.Base.Model)
	if at.Base.Model == "" || err != nil || s.c.config.IgnorePrices {
		return &out
	}
	out.Rates, _ = cost.Of(m, at.Prompt)
	if ttl := m.Cache.Life(); ttl > 0 {
		out.CacheLife = ttl
		out.Cold = out.Cached && at.Now.Sub(last) > ttl
		out.Expiry = expiryChance(l.log, ttl)
	}
	return &out
}

// lastRead is when the provider last read a prompt of the log: with the messages
// before those that have just come. Zero where there were none, or nobody knows.
func lastRead(log *thread.Thread, first int) time.Time {
	for i := first - 1; i >= 0; i-- {
		if uncopied.At(log, i).Role == thread.Assistant {
			return uncopied.At(log, first-1).Time
		}
	}
	return time.Time{}
}

const (
	// usualRequests: before a conversation has told more, one request of so many is
	// taken to come too late. The agents of the dev split pause for that long three
	// times in a hundred; one that never does must not wait for it for long.
	usualRequests = 100
	// recentMessages bounds how far back pauses are looked for.
	recentMessages = 1000
)

// expiryChance is the chance that the next request comes too late for a cache that
// keeps a prompt for so long, from the pauses between requests so far.
func expiryChance(log *thread.Thread, ttl time.Duration) float64 {
	asked, late := 0, 0
	var last time.Time
	for i := max(1, log.Len()-recentMessages); i < log.Len(); i++ {
		m, before := uncopied.At(log, i), uncopied.At(log, i-1)
		if m.Role != thread.Assistant || before.Role == thread.Assistant || before.Time.IsZero() {
			continue
		}
		if !last.IsZero() {
			asked++
			if before.Time.Sub(last) > ttl {
				late++
			}
		}
		last = before.Time
	}
	return float64(late+1) / float64(asked+usualRequests)
}

// expect notes what a compaction will save where prices are known: in each step,
// as tokens of uncached input, and after how many steps that is more than what
// writing the new prefix costs.
func expect(details map[string]any, at *policy.Situation, after int) {
	freed := at.Prompt - after
	steps := cost.BreakEven(at.Rates, freed, at.Messages, at.Cold)
	if math.IsInf(steps, 1) {
		return
	}
	details["saved_per_step"] = int(at.Rates.Read * float64(freed))
	details["pays_after_steps"] = int(math.Ceil(steps))
}

// limit is what a request may take, in tokens: what the policy allows, the
// budget, or what the window leaves beside the answer; 0 where none is known.
func (s *Session) limit(at *policy.Situation) int {
	p, window := s.c.config.Policy, at.Window
	if w, ok := policy.As[policy.Windowed](p); ok {
		window = w.WindowOf(at)
	}
	limit := max(0, window-at.Output)
	if at.Budget > 0 && (limit == 0 || at.Budget < limit) {
		limit = at.Budget
	}
	if bounded, ok := policy.As[policy.Bounded](p); ok {
		if own := bounded.Limit(at); own > 0 && (limit == 0 || own < limit) {
			limit = own
		}
	}
	return limit
}

// bring reads stored content that the agent plainly means, inside what the limit
// leaves; a policy that keeps room for it free makes that room with the compaction
// that is due. What cannot be read is passed over. The events of the rehydrator
// wait for render, which knows what of it stands in the prompt.
func (s *Session) bring(ctx context.Context, at *policy.Situation) (*policy.Situation, []render.Rehydrated, error) {
	k := s.cached()
	k.brought.take() // of an earlier try
	if k.rehydrator == nil || at.Current.Empty() {
		return at, nil, nil
	}
	turn := rehydrate.TurnOf(at.Thread, at.Base.Tools)
	reserve := 0
	if p, ok := policy.As[policy.Reserving](s.c.config.Policy); ok {
		if reserve, turn.Most = p.Reserve(at); turn.Most == 0 {
			turn.Most = -1
		}
	}
	if limit := s.limit(at); limit > 0 {
		turn.Room = max(limit-at.Prompt, reserve)
		if turn.Room <= 0 {
			turn.Room = -1
		}
	}
	shown, what, err := k.rehydrator.Rehydrate(ctx, s.c.config.Requester, turn, at.Current)
	if err != nil && ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	for i := range shown {
		shown[i].Reach = at.Profile.Reach
	}
	return at.With(what), shown, nil
}
