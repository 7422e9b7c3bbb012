package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// commit saves what the plan externalizes, then the plan together with its events. Its
// error is the decision's, or why the plan could not be stored; an event reports it.
func commit(ctx context.Context, s *Session, loaded snapshot, situation *policy.Situation, d decision, attempt int) error {
	err := d.err
	if err == nil {
		err = validateAgainstLog(ctx, s.c.config.Log, situation, d.fitted.Plan)
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
	if _, err := s.c.config.Plans.Commit(ctx, s.id, loaded.version, store.Commit{Plan: d.fitted.Plan, Events: events}); err != nil {
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
