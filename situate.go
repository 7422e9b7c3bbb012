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

// stepOptions says what a step asks for beside its prompt.
type stepOptions struct {
	forced       bool         // compact, whether it is due or not
	refusals     int          // how often the provider has refused the step
	instructions string       // what the user wants summaries to keep in mind
	usage        *calibration // what the provider counted, as a job was told

	attempt, attempts int // of a job; both 0 in a step
}

// situate makes the value that policies decide on: what was loaded, counted as
// the provider counts, with limits, prices and the time.
func (s *Session) situate(ctx context.Context, l snapshot, step Step, options stepOptions) (*policy.Situation, error) {
	uncalibrated, err := s.buildSituation(ctx, l, step, options)
	if err != nil {
		return nil, err
	}
	usage := *cmp.Or(options.usage, &l.usage)
	situation, err := policy.Situate(calibrateSituation(uncalibrated, usage.factor(l.log.Len(), l.version)))
	if err != nil && l.plan != nil {
		// The plan does not hold for the log any more: it is not used.
		s.emit(ctx, event.Event{Type: event.Failed, Err: event.ErrorClass(err), Details: map[string]any{"fallback": "passthrough"}})
		uncalibrated.Current = nil
		situation, err = policy.Situate(calibrateSituation(uncalibrated, usage.factor(l.log.Len(), l.version)))
	}
	if err != nil {
		return nil, err
	}
	if measured, changed := s.measure(ctx, l, situation); changed {
		if situation, err = policy.Situate(calibrateSituation(uncalibrated, measured.factor(l.log.Len(), l.version))); err != nil {
			return nil, err
		}
	}
	return s.withPrices(l, situation), nil
}

// buildSituation is the situation in the figures of the counter.
func (s *Session) buildSituation(ctx context.Context, l snapshot, step Step, options stepOptions) (policy.Situation, error) {
	reach := s.reach(step)
	sent := s.baseRequest(step, l, reach == render.Tools && s.offersTools())
	next := s.baseRequest(step, l, reach == render.Tools)
	situation, err := s.c.baseSituation(ctx, l.log, next, s.profile(step), s.state().sizes)
	if err != nil {
		return situation, err
	}
	situation.SentBase, situation.SentFixed = sent, s.c.tokenMemo.Prompt(sent)
	if step.Fixed > 0 {
		situation.Fixed, situation.SentFixed = step.Fixed, step.Fixed
	}
	situation.Namer = s.c.namer(ctx)
	if p, ok := policy.As[policy.Caching](s.c.config.Policy); ok {
		situation.CacheRule = p.CacheRule()
	}
	situation.Current, situation.Round = l.plan, l.round
	situation.Window, situation.Output, situation.Budget = step.Window, step.Output, step.Budget
	situation.Forced, situation.Refusals, situation.Instructions = options.forced, options.refusals, options.instructions
	situation.Attempt, situation.Attempts = options.attempt, options.attempts
	situation.Answers = situation.Answers.For(step.Agent)
	return situation, nil
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
	p.Key = s.c.signing.get()
	if p.Reach = s.reach(step); p.Reach == render.Tools {
		p.Reach = ""
	}
	return p
}

// baseRequest is the request around the messages: the step's, with the memory block
// behind its system prompt, and with the tools that reach what was removed.
func (s *Session) baseRequest(step Step, l snapshot, offered bool) *prompt.Prompt {
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

// baseSituation is what a policy needs to know of a log before a request, whoever keeps
// the log.
func (c *Compactor) baseSituation(ctx context.Context, t *thread.Thread, base *prompt.Prompt, profile render.Profile, sizes *sizeCache) (policy.Situation, error) {
	known := sizes.forProfile(profile, c.config.Counter)
	changed, plain, err := known.messageSizes(ctx, t)
	if err != nil {
		return policy.Situation{}, err
	}
	return policy.Situation{
		Thread: t, Memo: &known.memo, Base: base, Profile: profile,
		Counter: c.config.Counter, Count: c.tokenMemo.Message, CountText: c.config.Memory.Summarizer(c.config.Counter).Counter, Estimates: &known.estimates, Fixed: c.tokenMemo.Prompt(base),
		ChangedSizes: changed, PlainSizes: plain,
		Summarizer: c.config.Summarizer, Answers: c.config.Answers, Tools: c.config.Tools, CurrentSource: c.source(t), Now: c.config.Now(),
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

// withPrices is a situation with what the tokens of its model cost, whether the
// provider has forgotten the prompt since it last read one, and the chance that it
// will have done so by the next step. With Config.IgnorePrices, or for a model
// that the table of package token does not hold, there are no prices.
func (s *Session) withPrices(l snapshot, situation *policy.Situation) *policy.Situation {
	out := *situation
	last := lastPromptRead(l.log, l.firstNew)
	out.Cached = !last.IsZero()
	m, err := token.Models().Find(situation.Base.Model)
	if situation.Base.Model == "" || err != nil || s.c.config.IgnorePrices {
		return &out
	}
	out.Rates, _ = cost.RatesOf(m, situation.PromptTokens)
	if ttl := m.Cache.Life(); ttl > 0 {
		out.CacheLife = ttl
		out.CacheExpired = out.Cached && situation.Now.Sub(last) > ttl
		out.ExpiryChance = expiryChance(l.log, ttl)
	}
	return &out
}

// lastPromptRead is when the provider last read a prompt of the log: with the messages
// before those that have just come. Zero where there were none, or nobody knows.
func lastPromptRead(log *thread.Thread, first int) time.Time {
	for i := first - 1; i >= 0; i-- {
		if uncopied.At(log, i).Role == thread.Assistant {
			return uncopied.At(log, first-1).Time
		}
	}
	return time.Time{}
}

const (
	// assumedRequests: before a conversation has told more, one request of so many is
	// taken to come too late. The agents of the dev split pause for that long three
	// times in a hundred; one that never does must not wait for it for long.
	assumedRequests = 100
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
	return float64(late+1) / float64(asked+assumedRequests)
}

// addExpectedSavings notes what a compaction will save where prices are known: in each step,
// as tokens of uncached input, and after how many steps that is more than what
// writing the new prefix costs.
func addExpectedSavings(details map[string]any, situation *policy.Situation, after int) {
	freed := situation.PromptTokens - after
	steps := cost.BreakEven(situation.Rates, freed, situation.MessageTokens, situation.CacheExpired)
	if math.IsInf(steps, 1) {
		return
	}
	details["saved_per_step"] = int(situation.Rates.Read * float64(freed))
	details["pays_after_steps"] = int(math.Ceil(steps))
}

// limit is what a request may take, in tokens: what the policy allows, the
// budget, or what the window leaves beside the answer; 0 where none is known.
func (s *Session) limit(situation *policy.Situation) int {
	p, window := s.c.config.Policy, situation.Window
	if w, ok := policy.As[policy.Windowed](p); ok {
		window = w.ContextWindow(situation)
	}
	limit := max(0, window-situation.Output)
	if situation.Budget > 0 && (limit == 0 || situation.Budget < limit) {
		limit = situation.Budget
	}
	if bounded, ok := policy.As[policy.Bounded](p); ok {
		if own := bounded.Limit(situation); own > 0 && (limit == 0 || own < limit) {
			limit = own
		}
	}
	return limit
}

// rehydrate reads stored content that the agent plainly means, inside what the limit
// leaves; a policy that keeps room for it free makes that room with the compaction
// that is due. What cannot be read is passed over. The events of the rehydrator
// wait for render, which knows what of it stands in the prompt.
func (s *Session) rehydrate(ctx context.Context, situation *policy.Situation) (*policy.Situation, []render.Rehydrated, error) {
	k := s.state()
	k.pendingEvents.take() // of an earlier try
	if k.rehydrator == nil || situation.Current.Empty() {
		return situation, nil, nil
	}
	turn := rehydrate.TurnOf(situation.Thread, situation.Base.Tools)
	reserve := 0
	if p, ok := policy.As[policy.Reserving](s.c.config.Policy); ok {
		if reserve, turn.MaxArtifacts = p.Reserve(situation); turn.MaxArtifacts == 0 {
			turn.MaxArtifacts = -1
		}
	}
	if limit := s.limit(situation); limit > 0 {
		turn.Room = max(limit-situation.PromptTokens, reserve)
		if turn.Room <= 0 {
			turn.Room = -1
		}
	}
	shown, what, err := k.rehydrator.Rehydrate(ctx, s.c.config.Requester, turn, situation.Current)
	if err != nil && ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	for i := range shown {
		shown[i].Reach = situation.Profile.Reach
	}
	return situation.WithRehydrated(what), shown, nil
}
