package palimpsest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// lastPrompt is what the last prompt was made from beside the log. Reasoning that a provider
// binds to the prompt is no longer valid once something of it has changed.
type lastPrompt struct {
	// Contents were brought back in it.
	Contents []placedContent `json:"contents,omitempty"`
	// PlanRewritten is what Rewritten gave for its plan: a plan that changes what is sent gives
	// more. It may have come into force while the model answered.
	PlanRewritten int `json:"plan_rewritten,omitempty"`
	// Rewritten is how many messages the log had when a prompt last differed from the one
	// before.
	Rewritten int `json:"rewritten,omitempty"`
}

// placedContent is a digest of content, and the place where it was shown first.
type placedContent struct {
	Digest string    `json:"digest"`
	At     thread.ID `json:"at,omitempty"`
}

// lastPromptKind is the kind of the documents that store last prompts, by conversation.
const lastPromptKind = "prompt"

// lastPrompt is that of this process or another. isKnown is false where none was made yet. If
// the document cannot be read, it is what this process knows. The lock is held.
func (s *Session) lastPrompt(ctx context.Context, l snapshot) (last lastPrompt, isKnown bool) {
	k := s.state()
	if s.c.config.Documents != nil {
		k.lastPrompt.isLoaded = false // another process may have taken the last step
		_ = k.lastPrompt.load(ctx, s, lastPromptKind)
		isKnown = k.step.load(ctx, s, lastStepKind) == nil && k.step.version > 0
	}
	if last = k.lastPrompt.value; last.Rewritten > l.log.Len() {
		last = lastPrompt{} // the thread was deleted and began anew
	}
	return last, isKnown || k.hasPrompted
}

// saveLastPrompt stores a last prompt that differs from the one before. The lock is held.
func (s *Session) saveLastPrompt(ctx context.Context, before, now lastPrompt) {
	if before.PlanRewritten == now.PlanRewritten && before.Rewritten == now.Rewritten && slices.Equal(before.Contents, now.Contents) {
		return
	}
	k := &s.state().lastPrompt
	k.save(ctx, s, lastPromptKind, now)
	k.value = now
}

// place gives contents the places where earlier prompts showed them. Where something of the
// last prompt is gone or stands elsewhere, or its plan is no longer in force, the reasoning so
// far was made behind another prompt, and the rendering is made anew without it.
func (s *Session) place(ctx context.Context, l snapshot, situation *policy.Situation, p *plan.Plan, f *policy.Fitted, contents []render.Rehydrated) (*policy.Fitted, error) {
	defer func() { s.state().hasPrompted = true }()
	if p == nil {
		return f, nil // and nothing is brought back
	}
	before, isKnown := s.lastPrompt(ctx, l)
	now := lastPrompt{PlanRewritten: p.Rewritten(), Rewritten: before.Rewritten}
	end := render.End(f.Prompt, f.Manifest)
	for i := range contents {
		made := placedContent{digest(contents[i]), end}
		for _, earlier := range before.Contents {
			if earlier.Digest == made.Digest && f.Manifest.Shows(earlier.At) {
				made, contents[i].At = earlier, earlier.At
			}
		}
		now.Contents = append(now.Contents, made)
	}
	isLost := func(p placedContent) bool { return p.At == "" || !slices.Contains(now.Contents, p) }
	if isKnown && now.PlanRewritten != before.PlanRewritten || slices.ContainsFunc(before.Contents, isLost) {
		now.Rewritten = l.log.Len()
	}
	s.saveLastPrompt(ctx, before, now)
	if !situation.Profile.BoundReasoning || now.Rewritten <= max(p.Rewritten(), situation.Rewritten) {
		return f, nil
	}
	again, err := situation.WithRewritten(now.Rewritten)
	if err != nil {
		return nil, err
	}
	return again.Render(p)
}

// digest tells contents apart.
func digest(r render.Rehydrated) string {
	sum := sha256.Sum256([]byte(r.Text()))
	return hex.EncodeToString(sum[:8])
}
