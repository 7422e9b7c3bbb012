package palimpsest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// planRequest is a step, and how its plan is asked for.
type planRequest struct {
	Step
	forced       bool         // compact, whether it is due or not
	fill         bool         // the step's budget is the size that was asked for
	refusals     int          // how often the provider has refused the step
	refusal      llm.Kind     // why, where it said so
	instructions string       // what the user wants summaries to keep in mind
	asked        *notes.Asked // a compaction that the model wants; nil for none
	usage        *calibration // what the provider counted, as a job was told
	sent         int          // what system and tools take until there is a plan, as a job was told; 0 is Step.Fixed

	attempt, attempts int // of a job; both 0 in a step
}

// situate makes the value that policies decide on: what was loaded, measured and counted as
// the provider counts, with limits, prices and the time.
func situate(ctx context.Context, s *Session, l snapshot, q planRequest) (*policy.Situation, error) {
	situation, broken, err := trySituate(ctx, s, measure(ctx, s, l, q), q)
	if broken != nil {
		s.emit(ctx, event.Event{Type: event.Failed, Details: map[string]any{"fallback": "passthrough"}}.Failing(broken))
	}
	return situation, err
}

// trySituate is situate without an event: broken says that the plan does not hold for the
// log any more, or that the API would refuse its request, so that its records are not used.
func trySituate(ctx context.Context, s *Session, l snapshot, q planRequest) (situation *policy.Situation, broken, err error) {
	given, err := buildSituation(ctx, s, l, q)
	if err != nil {
		return nil, nil, err
	}
	factor := l.usage.factor(l.log.Len(), l.version)
	given = calibrateSituation(given, factor)
	situation, err = policy.Situate(given)
	if broken = err; err == nil {
		if broken, err = refusedSince(s.state(), l, situation); err != nil {
			return nil, nil, err
		}
	}
	if broken != nil && l.plan != nil {
		given.Current = l.plan.WithoutRecords(l.log)
		situation, err = policy.Situate(given)
	}
	if err != nil {
		return nil, broken, err
	}
	return s.c.withPrices(l.log, l.firstNew, situation), broken, nil
}

// buildSituation is the situation in the counter's own figures.
func buildSituation(ctx context.Context, s *Session, l snapshot, q planRequest) (policy.Situation, error) {
	if min(q.Window, q.Output, q.Budget) < 0 || q.Window > 0 && q.Output >= q.Window {
		return policy.Situation{}, fmt.Errorf("a window of %d tokens, %d for the answer and a budget of %d leave no room for a request", q.Window, q.Output, q.Budget)
	}
	reach, k := s.c.reach(q.Profile.Reach), s.state()
	var tools, offered []prompt.Tool
	if reach == render.Tools && s.c.config.Recall != nil {
		tools = logSource{session: s}.handler(0).Tools()
	}
	if offersTools(s) {
		offered = tools
	}
	sent := baseRequest(q.Step, l.plan, reach, offered, !l.plan.Empty() || len(s.earlier) > 0)
	next := baseRequest(q.Step, l.plan, reach, tools, true)
	situation, err := s.c.baseSituation(ctx, l.log, next, s.c.profile(q.Profile), k.sizes)
	if err != nil {
		return situation, err
	}
	situation.SentBase, situation.SentFixed = sent, s.c.config.Counter.Prompt(sent)
	if q.Fixed > 0 {
		situation.Fixed, situation.SentFixed = q.Fixed, q.Fixed
		if l.plan.Empty() {
			situation.SentFixed = cmp.Or(q.sent, q.Fixed)
		}
	}
	situation.Namer = s.c.namer(ctx)
	if p, ok := policy.As[policy.Caching](s.c.config.Policy); ok {
		situation.CacheRule = p.CacheRule()
	}
	situation.Current, situation.Round = l.plan, l.round
	situation.Window, situation.Output, situation.Budget = q.Window, q.Output, q.Budget
	situation.Forced, situation.Refusals, situation.Refusal, situation.Instructions = q.forced, q.refusals, q.refusal, q.instructions
	situation.Fill = q.fill
	if q.asked != nil {
		situation.Instructions, situation.InstructionsBy = q.asked.Keep, thread.Assistant
	}
	if s.c.steers() {
		situation.Notes = append([]plan.Note{}, l.book.Notes...) // none are none, whatever the plan in force has
	}
	situation.Attempt, situation.Attempts = q.attempt, q.attempts
	if l.plan != nil && situation.Profile.BoundReasoning {
		last, _ := k.readLastPrompt(ctx, s.conversation, l.log.Len())
		situation.Rewritten = last.Rewritten
	}
	situation.Answers = situation.Answers.For(q.Agent)
	return situation, nil
}

// reach says how the reader of the prompt gets at what was removed: by the tools of
// Config.Recall, unless the step's profile says otherwise.
func (c *Compactor) reach(given render.Reach) render.Reach {
	switch {
	case c.config.Recall != nil && given == "":
		return render.Tools
	case given == "" || c.config.Recall == nil && given == render.Tools:
		return render.Nowhere
	default:
		return given
	}
}

// profile is a step's profile with key and reach. Tools are the default reach and stay
// unsaid.
func (c *Compactor) profile(p render.Profile) render.Profile {
	p.Key = c.signing.get()
	if p.Reach = c.reach(p.Reach); p.Reach == render.Tools {
		p.Reach = ""
	}
	return p
}

// baseRequest is the request around the messages: the step's, with the memory block after
// its system prompt, with the recall tools that are offered, and once something was
// removed with the note that says so, where the reader is offered the tools or only told.
func baseRequest(step Step, p *plan.Plan, reach render.Reach, tools []prompt.Tool, removed bool) *prompt.Prompt {
	base := *cmp.Or(step.Base, &prompt.Prompt{})
	base.Messages = nil
	if text := p.MemoryText(); text != "" {
		base.System = append(slices.Clone(base.System), prompt.System{Text: text})
	}
	base.Tools = withTools(base.Tools, tools)
	if removed && (len(tools) > 0 || step.Profile.Reach == render.Told) {
		base.System = reach.AddNote(base.System)
	}
	return &base
}

// withTools adds tools to those that an agent has, unless it has one of that name.
func withTools(tools, more []prompt.Tool) []prompt.Tool {
	if len(more) == 0 {
		return tools
	}
	out := slices.Clone(tools)
	for _, tool := range more {
		if !slices.ContainsFunc(tools, func(x prompt.Tool) bool { return x.Name == tool.Name }) {
			out = append(out, tool)
		}
	}
	return out
}

// baseSituation is the part of a situation that needs no session.
func (c *Compactor) baseSituation(ctx context.Context, t *thread.Thread, base *prompt.Prompt, profile render.Profile, sizes *sizeCache) (policy.Situation, error) {
	profile = profile.Suited(t)
	known := sizes.forProfile(profile, c.config.Counter)
	changed, plain, all, err := known.messageSizes(ctx, t)
	if err != nil {
		return policy.Situation{}, err
	}
	return policy.Situation{
		Thread: t, Memo: &known.memo, Base: base, Profile: profile,
		Counter: c.config.Counter, Estimates: &known.estimates, Fixed: c.config.Counter.Prompt(base),
		ChangedSizes: changed, PlainSizes: plain, LogSize: all,
		Summarizer: c.config.Summarizer, Answers: c.config.Answers, Tools: c.config.Tools, CurrentSource: c.source(t), Now: c.config.Now(),
	}, nil
}

// namer gives ids to what plans externalize. Where its keys cannot be read it is nil: ids
// are plain ones then, and saving the contents will fail.
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

// requestLimit is how large a request may be, in tokens: the smaller of windowLimit and the
// policy's own limit; 0 where none is known.
func requestLimit(p policy.Policy, situation *policy.Situation) int {
	limit := windowLimit(p, situation)
	if bounded, ok := policy.As[policy.Bounded](p); ok {
		if own := bounded.Limit(situation); own > 0 && (limit == 0 || own < limit) {
			limit = own
		}
	}
	return limit
}

// windowLimit is the smaller of the budget and what the window leaves beside the answer, in
// tokens; 0 where neither is known.
func windowLimit(p policy.Policy, situation *policy.Situation) int {
	step := *situation
	if w, ok := policy.As[policy.Windowed](p); ok {
		step.Window = w.ContextWindow(situation)
	}
	return step.Limit()
}

// withPrices adds what the tokens of the model cost, whether the provider's prompt cache
// has expired, and the chance that it will by the next step. A model that the table of
// package token does not know has the prices of its family (token.ModelSet.Like), or none, and none has with Config.IgnorePrices.
func (c *Compactor) withPrices(log *thread.Thread, firstNew int, situation *policy.Situation) *policy.Situation {
	out := *situation
	last := lastPromptRead(log, firstNew)
	out.Cached = !last.IsZero()
	m, err := token.Models().Like(situation.Base.Model)
	if situation.Base.Model == "" || err != nil || c.config.IgnorePrices {
		return &out
	}
	out.Rates, _ = m.Rates(situation.PromptTokens)
	if ttl := m.Cache.Life(); ttl > 0 {
		out.CacheLife = ttl
		out.CacheExpired = out.Cached && situation.Now.Sub(last) > ttl
		out.ExpiryChance = expiryChance(log, ttl)
	}
	return &out
}

// lastPromptRead is when the provider last read a prompt of the log: with the messages
// before those from position first on. It is zero where there was none.
func lastPromptRead(log *thread.Thread, first int) time.Time {
	for i := first - 1; i >= 0; i-- {
		if log.At(i).Role == thread.Assistant {
			return log.At(first - 1).Time
		}
	}
	return time.Time{}
}

const (
	// assumedRequests: until a conversation has had more requests, one of so many is
	// assumed to come too late. Agents in the dev split pause that long three times in a
	// hundred.
	assumedRequests = 100
	// recentMessages bounds how far back pauses are looked for.
	recentMessages = 1000
)

// expiryChance is the chance that the next request comes too late for a cache with that
// time to live, judged by the pauses so far.
func expiryChance(log *thread.Thread, ttl time.Duration) float64 {
	asked, late := 0, 0
	var last time.Time
	for i := max(1, log.Len()-recentMessages); i < log.Len(); i++ {
		m, before := log.At(i), log.At(i-1)
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

// calibrateSituation multiplies all figures of a situation with a factor, so that trigger,
// planner and meter agree.
func calibrateSituation(situation policy.Situation, factor float64) policy.Situation {
	if factor == 1 {
		return situation
	}
	situation.Counter = situation.Counter.Scaled(factor)
	situation.Fixed, situation.SentFixed = scaled(situation.Fixed, factor), scaled(situation.SentFixed, factor)
	situation.ChangedSizes, situation.PlainSizes = scaledAll(situation.ChangedSizes, factor), scaledAll(situation.PlainSizes, factor)
	situation.Correction = factor
	return situation
}

func scaled(n int, factor float64) int { return int(math.Ceil(float64(n)*factor - 1e-9)) }

func scaledAll(sizes []int, factor float64) []int {
	out := make([]int, len(sizes))
	for i, n := range sizes {
		out[i] = scaled(n, factor)
	}
	return out
}

// source returns the function that describes the source of a replayable result as it is
// now: Config.CurrentSource, else the tool's Capture, else another result in the log that
// was read from it later. It looks at each source once: a plan asks for the same one many
// times, which may be slow, and would contradict itself if the answers differed.
func (c *Compactor) source(t *thread.Thread) func(thread.ToolCall) (thread.Determinism, bool) {
	newest := sync.OnceValue(func() map[string]reading { return newestReadings(t) })
	type answer struct {
		now   thread.Determinism
		known bool
	}
	var mu sync.Mutex
	answers := map[[2]string]answer{}
	return func(call thread.ToolCall) (thread.Determinism, bool) {
		look := c.look(call)
		if look == nil {
			last, known := newest()[toolclass.Source(call)]
			return last.Determinism, known && last.call != call.ID // its own word proves nothing
		}
		mu.Lock()
		defer mu.Unlock()
		of := [2]string{call.Name, call.Arguments}
		a, asked := answers[of]
		if !asked {
			a.now, a.known = look(call)
			answers[of] = a
		}
		return a.now, a.known
	}
}

// look is what looks at the source of a call; nil where only the log can tell.
func (c *Compactor) look(call thread.ToolCall) func(thread.ToolCall) (thread.Determinism, bool) {
	if c.config.CurrentSource != nil {
		return c.config.CurrentSource
	}
	capture := c.config.Tools.Policy(call.Name).Capture
	if capture == nil {
		return nil
	}
	return func(call thread.ToolCall) (thread.Determinism, bool) {
		now, err := capture(call)
		return now, err == nil
	}
}

// reading is what a source looked like when a call read it.
type reading struct {
	thread.Determinism
	call string
}

// newestReadings are the last ones of each source. After a write, a command or the work of
// another agent nobody knows any more.
func newestReadings(t *thread.Thread) map[string]reading {
	newest, calls := map[string]reading{}, map[string]thread.ToolCall{}
	for _, m := range t.All() {
		for _, call := range m.Calls() {
			calls[call.ID] = call
			switch toolclass.ClassOf(call.Name) {
			case toolclass.Edit, toolclass.Write:
				delete(newest, toolclass.Source(call))
			case toolclass.Shell, toolclass.Agent:
				clear(newest)
			}
		}
		if r, ok := m.Result(); ok && r.Determinism != nil {
			if call, known := calls[r.CallID]; known {
				newest[toolclass.Source(call)] = reading{*r.Determinism, call.ID}
			}
		}
	}
	return newest
}

const (
	// measureTimeout bounds the call for a size; measurePause is how long to wait after
	// one that failed.
	measureTimeout = 10 * time.Second
	measurePause   = time.Minute
)

// measure completes what was loaded with the provider's own size of the request, where the
// counter only estimates, nothing under this plan was counted yet, and the request is so
// large that the difference may matter.
func measure(ctx context.Context, s *Session, l snapshot, q planRequest) snapshot {
	counter, now, k := s.c.config.Measure, s.c.config.Now, s.state()
	known := l.usage.Input > 0 && l.usage.Version == l.version && l.usage.Position <= l.log.Len()
	if counter == nil || known || s.c.config.Counter.Exact() || now().Before(k.measureAfter) {
		return l
	}
	situation, _, err := trySituate(ctx, s, l, q)
	if err != nil || situation.PromptTokens < max(minCalibrated, requestLimit(s.c.config.Policy, situation)/2) {
		return l // situating again reports the error
	}
	bounded, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	n, err := counter.CountTokens(bounded, situation.Rendered.Prompt)
	if err != nil || n <= 0 {
		k.measureAfter = now().Add(measurePause)
		return l
	}
	l.usage = calibration{Position: l.log.Len(), Version: l.version, Tokens: float64(situation.PromptTokens), Input: n}
	k.calibration.newest = l.usage
	return l
}
