package palimpsest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// deliver makes the prompt of a step from what was rendered: what is brought back goes to
// its end, or where the turn has shown it already, as far as the limit leaves room. Then
// events, documents and the index of what was removed follow.
func deliver(ctx context.Context, s *Session, loaded snapshot, situation *policy.Situation, p *plan.Plan, f *policy.Fitted, rehydrated []render.Rehydrated, q planRequest) (*Prepared, error) {
	limit, room, mark := requestLimit(s.c.config.Policy, situation), -1, 0
	if s.c.steers() {
		mark = dueMark(s.c.config.Policy, situation)
	}
	if limit > 0 {
		room = max(limit-f.Tokens, 0)
	}
	shown, brought, room := fitContents(rehydrated, situation.Count, room)
	emitRehydrated(ctx, s, shown)
	recalled, more, _ := fitContents(inject(ctx, s, loaded, situation, p, room), situation.Count, room)
	emitRecalled(ctx, s, situation, recalled)
	shown, brought = append(shown, recalled...), brought+more
	reminded := remind(ctx, s, loaded, f, mark, f.Tokens+brought)
	f, err := place(ctx, s, loaded, situation, p, f, shown, reminded)
	if err != nil {
		return nil, err
	}
	if reminded.Text != "" {
		harness := render.Rehydrated{Content: reminded.Text, At: reminded.At}
		m := harness.Message()
		shown, brought = append(shown, harness), brought+situation.Count(&m)
	}
	tokens := f.Tokens + brought
	// The situation may have been counted by an older plan's factor, or by one just measured.
	applied := situation.Counter.Factor() / s.c.config.Counter.Factor()
	out := &Prepared{
		Prompt: f.Prompt, Manifest: f.Manifest, Step: q.Step, Version: situation.Thread.Len(), PlanVersion: loaded.version,
		Before: situation.PromptTokens, Tokens: tokens, refusals: q.refusals, limit: limit, mark: mark,
		calibration: calibration{Position: situation.Thread.Len(), Version: loaded.version, Tokens: float64(tokens) / applied},
	}
	if len(shown) > 0 {
		out.Prompt, out.Manifest = render.Append(f.Prompt, f.Manifest, shown, situation.Profile)
	}
	out.Prompt = render.Owned(out.Prompt)
	if p != loaded.plan {
		out.PlanVersion = 0 // it did not hold
	}
	if p != situation.Current {
		out.Compacted = p
	}
	s.emit(ctx, preparedEvent(situation, f, tokens, limit))
	indexInBackground(ctx, s, situation.Thread, p, loaded.version)
	base := situation.Base
	if situation.Profile.Reach == render.Told { // no tools come, and the note only with a plan
		base = situation.SentBase
	}
	s.state().saveLastStep(ctx, s.conversation, q.Step, cmp.Or(q.Fixed, s.c.tokenMemo.Prompt(base)))
	return out, nil
}

// fitContents are those contents that fit the room, in tokens, what they take and what is
// left. A negative room has no end.
func fitContents(contents []render.Rehydrated, count func(*thread.Message) int, room int) (fit []render.Rehydrated, tokens, left int) {
	for _, r := range contents {
		m := r.Message()
		n := count(&m)
		if room >= 0 && n > room {
			continue
		}
		if room >= 0 {
			room -= n
		}
		tokens += n
		fit = append(fit, r)
	}
	return fit, tokens, room
}

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
	// Reminder was shown when little room was left; zero if none was.
	Reminder reminder `json:"reminder,omitzero"`
}

// reminder is a text of the harness, the place where it stands, and the version of the plan until
// whose end it does.
type reminder struct {
	Text string    `json:"text"`
	At   thread.ID `json:"at"`
	Plan int       `json:"plan"`
}

// placedContent is a digest of content, and the place where it was shown first.
type placedContent struct {
	Digest string    `json:"digest"`
	At     thread.ID `json:"at,omitempty"`
}

// lastPromptKind is the kind of the documents that store last prompts, by conversation.
const lastPromptKind = "prompt"

// readLastPrompt is that of this process or another, for a log of so many messages. isKnown is
// false where none was made yet. If the document cannot be read, it is what this process knows.
// The lock is held.
func (k *sessionState) readLastPrompt(ctx context.Context, in conversation, messages int) (last lastPrompt, isKnown bool) {
	if in.c.config.Documents != nil {
		k.lastPrompt.isLoaded = false // another process may have taken the last step
		_ = k.lastPrompt.load(ctx, in, lastPromptKind)
		isKnown = k.step.load(ctx, in, lastStepKind) == nil && k.step.version > 0
	}
	if last = k.lastPrompt.value; last.Rewritten > messages {
		last = lastPrompt{} // the thread was deleted and began anew
	}
	return last, isKnown || k.hasPrompted
}

// place gives contents the places where earlier prompts showed them. Where something of the
// last prompt is gone or stands elsewhere, or its plan is no longer in force, the reasoning so
// far was made behind another prompt, and the rendering is made anew without it. The lock is
// held.
func place(ctx context.Context, s *Session, l snapshot, situation *policy.Situation, p *plan.Plan, f *policy.Fitted, contents []render.Rehydrated, reminded reminder) (*policy.Fitted, error) {
	k := s.state()
	defer func() { k.hasPrompted = true }()
	if p == nil && reminded == (reminder{}) {
		return f, nil // and nothing is brought back
	}
	before, isKnown := k.readLastPrompt(ctx, s.conversation, l.log.Len())
	now := lastPrompt{PlanRewritten: p.Rewritten(), Rewritten: before.Rewritten, Reminder: reminded}
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
	if now.PlanRewritten != before.PlanRewritten || now.Rewritten != before.Rewritten || now.Reminder != before.Reminder || !slices.Equal(now.Contents, before.Contents) {
		k.lastPrompt.save(ctx, s.conversation, lastPromptKind, now)
		k.lastPrompt.value = now
	}
	if !situation.Profile.BoundReasoning || now.Rewritten <= max(p.Rewritten(), situation.Rewritten) {
		return f, nil
	}
	again := *situation
	again.Rewritten = now.Rewritten
	situation, err := policy.Situate(again)
	if err != nil {
		return nil, err
	}
	return situation.Render(p)
}

// digest tells contents apart.
func digest(r render.Rehydrated) string {
	sum := sha256.Sum256([]byte(r.Text()))
	return hex.EncodeToString(sum[:8])
}

// dueMark is where a policy compacts, in tokens of the whole request; 0 if that is not known.
func dueMark(p policy.Policy, situation *policy.Situation) int {
	if marked, ok := policy.As[interface {
		Marks(*policy.Situation) policy.Marks
	}](p); ok {
		return marked.Marks(situation).Mark
	}
	return requestLimit(p, situation)
}

// reminderShare is the part of the room up to the next compaction at which the model is reminded.
const reminderShare = 10

// remind is the text that tells the model, once under each plan, that little room is left; zero for none.
// Later prompts under the plan have it at the same place. The lock is held.
func remind(ctx context.Context, s *Session, l snapshot, f *policy.Fitted, mark, tokens int) reminder {
	if !s.c.steers() || !s.c.config.Recall.Reminder {
		return reminder{}
	}
	last, _ := s.state().readLastPrompt(ctx, s.conversation, l.log.Len())
	if r := last.Reminder; r.Text != "" && r.Plan == l.version && f.Manifest.Shows(r.At) {
		return r
	}
	end := render.End(f.Prompt, f.Manifest)
	if end == "" || tokens >= mark || mark-tokens > mark/reminderShare {
		return reminder{}
	}
	left := max(1, (mark-tokens)/1000) * 1000
	return reminder{At: end, Plan: l.version, Text: fmt.Sprintf("[Reminder by the harness, not by the user: about %s tokens are left before the earlier part of this conversation is compacted. Write down with context_note what must not be lost.]", clip.Number(left))}
}
