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

// shownContent is what the last prompt showed beside log and plan. Reasoning that a provider
// binds to the prompt is no longer valid once something of it is gone or stands elsewhere.
type shownContent struct {
	Contents []placedContent `json:"contents,omitempty"`
	// Rewritten is how many messages the log had when that happened last.
	Rewritten int `json:"rewritten,omitempty"`
}

// placedContent is a digest of content, and the place where it was shown first.
type placedContent struct {
	Digest string    `json:"digest"`
	At     thread.ID `json:"at,omitempty"`
}

// shownKind is the kind of the documents that store what prompts showed, by conversation.
const shownKind = "shown"

// shownBefore is what the last prompt showed, another process's too. If the document cannot be
// read, it is what this process knows. The lock is held.
func (s *Session) shownBefore(ctx context.Context, l snapshot) shownContent {
	k := &s.state().shown
	if s.c.config.Documents != nil {
		k.isLoaded = false // another process may have taken the last step
		_ = k.load(ctx, s, shownKind)
	}
	if k.value.Rewritten > l.log.Len() {
		return shownContent{} // the thread was deleted and began anew
	}
	return k.value
}

// saveShown stores what the prompt shows, where it changed. The lock is held.
func (s *Session) saveShown(ctx context.Context, before, now shownContent) {
	if before.Rewritten == now.Rewritten && slices.Equal(before.Contents, now.Contents) {
		return
	}
	k := &s.state().shown
	k.save(ctx, s, shownKind, now)
	k.value = now
}

// place gives contents the places where earlier prompts showed them, and keeps account of
// those. Where something is gone or moves, the reasoning so far was made behind another
// prompt, and the rendering is made anew without it.
func (s *Session) place(ctx context.Context, l snapshot, situation *policy.Situation, p *plan.Plan, f *policy.Fitted, contents []render.Rehydrated) (*policy.Fitted, error) {
	if s.c.config.Recall == nil || p.Empty() {
		return f, nil
	}
	before := s.shownBefore(ctx, l)
	now := shownContent{Rewritten: before.Rewritten}
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
	if slices.ContainsFunc(before.Contents, isLost) {
		now.Rewritten = l.log.Len()
	}
	s.saveShown(ctx, before, now)
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
