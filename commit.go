package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// commit saves what the plan externalizes, then the plan together with its events. Its
// error is the decision's, or why the plan could not be stored; an event reports it.
func commit(ctx context.Context, s *Session, loaded snapshot, situation *policy.Situation, d decision, attempt int) error {
	err := d.err
	if err == nil {
		err = validateAgainstLog(ctx, s.c.config.Store.Log, situation, d.fitted.Plan)
	}
	if err == nil {
		err = s.c.saveArtifacts(ctx, situation.Thread, loaded.plan, d.fitted.Plan)
	}
	if err == nil {
		err = checkVersion(s.condition.Plans, loaded.version)
	}
	if err == nil {
		err = commitWithEvents(ctx, s, loaded, situation, d, attempt)
	}
	if err == nil || errors.Is(err, policy.ErrNothing) {
		return err // no failure: the thread continues as it is
	}
	if isConflict(err) {
		s.emit(ctx, event.Event{Type: event.PlanConflict, Details: map[string]any{"version": loaded.version + 1, "attempt": attempt}})
		if attempt < maxAttempts && ctx.Err() == nil {
			return err // the caller tries again
		}
	}
	fallback := "passthrough"
	if !situation.Current.Empty() {
		fallback = "earlier_plan"
	}
	failed := event.Event{
		Type: event.Failed, TokensBefore: situation.PromptTokens, BudgetLimit: requestLimit(s.c.config.Policy, situation), Duration: d.duration,
		Details: map[string]any{"fallback": fallback},
	}
	s.emit(ctx, failed.Failing(err))
	return err
}

// commitWithEvents stores the plan with its events, and emits them.
func commitWithEvents(ctx context.Context, s *Session, loaded snapshot, situation *policy.Situation, d decision, attempt int) error {
	events := s.c.compactionEvents(loaded, situation, d, attempt)
	if _, err := s.c.config.Store.Plans.Commit(ctx, s.id, loaded.version, store.Commit{Plan: d.fitted.Plan, Events: events}); err != nil {
		return err
	}
	if k := s.state(); k.monitor != nil {
		k.monitoredPlan = loaded.version + 1
		k.monitor.Compacted(situation.Thread, d.fitted.Plan)
	}
	s.emit(ctx, events...)
	return nil
}

// validateAgainstLog checks a plan against the messages that arrived while it was made. A
// late result for a call that the plan hides is a conflict: the plan must be made again.
func validateAgainstLog(ctx context.Context, logs store.Log, situation *policy.Situation, p *plan.Plan) error {
	log, err := logs.Load(ctx, situation.Thread.ID())
	if err != nil || log.Version() == situation.Thread.Version() {
		return err
	}
	if err := p.Validate(log); err != nil {
		return &store.ConflictError{ThreadID: situation.Thread.ID(), Want: situation.Thread.Version(), Have: log.Version()}
	}
	return nil
}

// saveArtifacts saves the contents that the plan's pointers name, so that no plan comes
// into force with a pointer to nothing. What the plan in force has moved out already is
// saved: to save it again would begin its time to live anew with each compaction, and
// bring back what has expired.
func (c *Compactor) saveArtifacts(ctx context.Context, log *thread.Thread, inForce, p *plan.Plan) error {
	artifacts := c.config.Artifacts
	if artifacts == nil {
		return nil
	}
	who := c.config.Requester
	names, err := artifacts.Names(ctx, who.TenantID)
	if err != nil {
		return fmt.Errorf("save artifacts: %w", err)
	}
	saved := externalizedBy(inForce)
	for _, externalized := range p.Externalized() {
		found := false
		for _, id := range externalized.Messages {
			if saved[savedContent{externalized.ArtifactID, id}] {
				found = true
				continue
			}
			i, ok := log.Index(id)
			if !ok {
				continue
			}
			m := log.At(i)
			content, ok := recall.FindContent(m, func(content string) bool { return names(externalized.ArtifactID, log.ID(), content) })
			if !ok {
				continue
			}
			meta := artifact.Metadata{
				ID: externalized.ArtifactID, ThreadID: log.ID(), TenantID: who.TenantID, Sensitivity: c.config.Sensitivity,
				MessageIDs: []thread.ID{m.ID}, Turn: m.Turn,
			}
			r, _ := m.Result()
			describeArtifact(c.config.Tools, &meta, r.Tool)
			if _, err := artifacts.Put(ctx, meta, content); err != nil {
				return fmt.Errorf("save message %s: %w", id, err)
			}
			found = true
		}
		if !found {
			// It may have been imported from a store that makes other ids.
			if _, err := artifacts.Metadata(ctx, who, externalized.ArtifactID); err == nil {
				continue
			}
			return fmt.Errorf("save %s: no message of its span holds the content of %s; make the id with artifact.IDOf or the Namer of Config.Artifacts", externalized.Path, externalized.ArtifactID)
		}
	}
	return nil
}

// savedContent is the content of a message under the id of its artifact. Another message
// with the same content has the same id, and is saved for itself.
type savedContent struct {
	artifact string
	message  thread.ID
}

// externalizedBy is what a plan, which may be nil, has moved out of the prompt.
func externalizedBy(p *plan.Plan) map[savedContent]bool {
	saved := map[savedContent]bool{}
	for _, externalized := range cmp.Or(p, &plan.Plan{}).Externalized() {
		for _, id := range externalized.Messages {
			saved[savedContent{externalized.ArtifactID, id}] = true
		}
	}
	return saved
}

// describeArtifact fills in what the content's tool declares about externalized results.
func describeArtifact(tools *toolpolicy.Registry, meta *artifact.Metadata, tool string) {
	if meta.Tool = tool; tool == "" {
		return
	}
	p := tools.Policy(tool)
	meta.Sensitivity = cmp.Or(artifact.Sensitivity(p.Sensitivity), meta.Sensitivity)
	meta.TTLSeconds = int((p.TTL + time.Second - 1) / time.Second)
}

// compactionEvents are the events of a compaction: one for each new record, and those of
// the whole. The store commits them together with the plan.
func (c *Compactor) compactionEvents(l snapshot, situation *policy.Situation, d decision, attempt int) []event.Event {
	f := d.fitted
	var events []event.Event
	before, after := tokensByMessage(situation.Rendered), tokensByMessage(f)
	for _, r := range f.Plan.Since(situation.Current) {
		e := event.OfRecord(r)
		e.TokensBefore, e.TokensAfter = 0, 0
		for _, id := range e.Span.MessageIDs {
			e.TokensBefore += before[id]
			e.TokensAfter += after[id]
		}
		e.TokensFreed = e.TokensBefore - e.TokensAfter
		events = append(events, e)
		if c.config.Recall != nil {
			events = append(events, event.Event{Type: event.Retrieved, Strategy: "recall", Span: e.Span})
		}
	}
	details := map[string]any{"round": f.Plan.Round}
	fallback, failure := f.Fallback()
	if fallback != "" {
		details["fallback"] = fallback
	}
	if len(f.Overlaps) > 0 {
		details["overlaps"] = len(f.Overlaps)
	}
	if hits, misses := cacheCounts(f); hits+misses > 1 {
		details["cache_hits"], details["cache_misses"] = hits, misses
	}
	var asked summarize.Report
	for _, r := range f.Summaries {
		asked = asked.With(r)
	}
	for name, value := range asked.Event().Details {
		if n, counts := value.(int); counts { // sentences of models
			details[name] = n
		}
	}
	addExpectedSavings(details, situation, f.Tokens)
	events = append(events,
		event.Event{Type: event.PlanCommitted, Details: map[string]any{"version": l.version + 1, "attempt": attempt}},
		event.Event{
			Type: event.Completed, TokensBefore: situation.PromptTokens, TokensAfter: f.Tokens, BudgetLimit: requestLimit(c.config.Policy, situation),
			TokensFreed: situation.PromptTokens - f.Tokens, Duration: d.duration, Cache: f.Cache(), Err: event.ErrorClass(failure), Cause: failure, Details: details,
		},
		event.Event{Type: event.SessionStart, TokensAfter: f.Tokens, Details: map[string]any{"source": "compact"}},
		event.Event{Type: event.Boundary, TokensBefore: situation.PromptTokens, TokensAfter: f.Tokens, Details: boundaryDetails(f, d.trigger)})
	now := c.config.Now().UTC()
	for n := range events {
		events[n].ThreadID, events[n].TenantID, events[n].Policy, events[n].Time = situation.Thread.ID(), c.config.Requester.TenantID, c.config.Policy.Name(), now
	}
	return events
}

// tokensByMessage is what each message, or its replacement, takes in a request.
func tokensByMessage(f *policy.Fitted) map[thread.ID]int {
	tokens := map[thread.ID]int{}
	for n, o := range f.Manifest.Messages {
		tokens[o.ID] += f.Sizes[n]
	}
	return tokens
}

// cacheCounts counts the summaries that were cached, and those that were not.
func cacheCounts(f *policy.Fitted) (hits, misses int) {
	for _, r := range f.Summaries {
		switch r.Cache {
		case event.Hit:
			hits++
		case event.Miss:
			misses++
		}
	}
	return hits, misses
}

// addExpectedSavings notes what a compaction will save where prices are known: per step,
// in tokens of uncached input, and after how many steps that exceeds the cost of writing
// the new prefix.
func addExpectedSavings(details map[string]any, situation *policy.Situation, after int) {
	freed := situation.PromptTokens - after
	steps := situation.Rates.BreakEven(freed, situation.MessageTokens, situation.CacheExpired)
	if math.IsInf(steps, 1) {
		return
	}
	details["saved_per_step"] = int(situation.Rates.Read * float64(freed))
	details["pays_after_steps"] = int(math.Ceil(steps))
}

// boundaryDetails are the details of event.Boundary: what triggered the compaction, and
// the first message after the last replacement. A shortened result replaces nothing but
// itself, so it is no replacement here.
func boundaryDetails(f *policy.Fitted, trigger string) map[string]any {
	details := map[string]any{"trigger": trigger}
	for n, o := range slices.Backward(f.Manifest.Messages) {
		if o.Synthetic && o.Record.Action != plan.Include && f.Prompt.Messages[n].Role != thread.Tool {
			break
		}
		if o.ID != "" {
			details["first_kept"] = o.ID
		}
	}
	return details
}
