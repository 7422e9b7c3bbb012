package palimpsest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// deliver makes the prompt of a step from what was rendered: what is brought back goes to
// its end, or where the turn has shown it already, as far as the limit leaves room. Then
// events, documents and the index of what was removed follow.
func deliver(ctx context.Context, s *Session, loaded snapshot, situation *policy.Situation, p *plan.Plan, f *policy.Fitted, rehydrated []render.Rehydrated, q planRequest) (*Prepared, error) {
	limit, room, mark := requestLimit(s.c.config.Policy, situation), -1, dueMark(s.c.config.Policy, situation)
	if limit > 0 {
		room = max(limit-f.Tokens, 0)
	}
	shown, brought, room := fitContents(rehydrated, situation.Counter.Message, room)
	emitRehydrated(ctx, s, shown)
	recalled, more, _ := fitContents(inject(ctx, s, loaded, situation, p, room), situation.Counter.Message, room)
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
		shown, brought = append(shown, harness), brought+situation.Counter.Message(&m)
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
	if p != loaded.plan {
		out.PlanVersion = 0 // it did not hold
	}
	if p != situation.Current {
		out.Compacted = p
	}
	s.emit(ctx, preparedEvent(situation, f, tokens, limit, mark))
	indexInBackground(ctx, s, situation.Thread, p, loaded.version)
	base := situation.Base
	if situation.Profile.Reach == render.Told { // no tools come, and the note only with a plan
		base = situation.SentBase
	}
	s.state().saveLastStep(ctx, s.conversation, q.Step, cmp.Or(q.Fixed, s.c.config.Counter.Prompt(base)))
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
	if p, ok := policy.As[marker](p); ok {
		return p.Marks(situation).Mark
	}
	return requestLimit(p, situation)
}

// marker is a policy that says when it compacts and what it leaves.
type marker interface {
	Marks(*policy.Situation) policy.Marks
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

// preparedEvent reports the size of a prompt, what it would be with nothing hidden, and at which size the next
// compaction is due.
func preparedEvent(situation *policy.Situation, f *policy.Fitted, tokens, limit, mark int) event.Event {
	whole := f.Tokens
	for _, size := range f.Sizes {
		whole -= size
	}
	for _, size := range situation.PlainSizes {
		whole += size
	}
	e := event.Event{Type: event.PromptPrepared, TokensBefore: whole, TokensAfter: tokens, TokensFreed: whole - tokens, BudgetLimit: limit}
	if mark > 0 {
		e.Details = map[string]any{"mark": mark}
	}
	return e
}

// bringBack reads stored content that the agent means without asking for it, within what
// the limit leaves. A policy that reserves room for it makes that room with the next
// compaction. What cannot be read is skipped. The rehydrator's events wait for render,
// which knows what of the content fits the prompt.
func bringBack(ctx context.Context, s *Session, situation *policy.Situation) (*policy.Situation, []render.Rehydrated, error) {
	k := s.state()
	k.pendingEvents = nil // of an earlier attempt
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
	if limit := requestLimit(s.c.config.Policy, situation); limit > 0 {
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
	next := *situation
	next.Rehydrated = what
	return &next, shown, nil
}

// emitRehydrated emits the rehydrator's events. Content that did not fit the prompt counts
// as blocked. The lock is held.
func emitRehydrated(ctx context.Context, s *Session, shown []render.Rehydrated) {
	to := s.c.config.Events
	if r := s.c.config.Recall; r != nil && r.Rehydrate.Events != nil {
		to = r.Rehydrate.Events
	}
	for _, e := range s.state().pendingEvents {
		if e.Type == event.Rehydrated && !slices.ContainsFunc(shown, func(r render.Rehydrated) bool { return r.ArtifactID == e.Details["artifact"] }) {
			e.Type, e.TokensAfter = event.Blocked, 0
			e.Details["reason"] = "no_room"
			delete(e.Details, "tokens")
		}
		e.Policy = s.c.config.Policy.Name()
		event.Emit(ctx, to, e)
	}
	s.state().pendingEvents = nil
}

// injection is what was recalled for a user's message under one plan. It stays the same, and
// in its place (see place), for all steps of the turn, so that the prompt keeps its
// prefix. What has no room any more does not come back.
type injection struct {
	message    thread.ID
	version    int
	contents   []render.Rehydrated
	wasEmitted bool // an event has told that it is shown
}

// maxInjected is how many removed messages are shown beside a user's message.
const maxInjected = 3

// inject searches the removed messages for those that match the user's last message. room
// is what the limit leaves, in tokens; negative for no limit.
func inject(ctx context.Context, s *Session, l snapshot, situation *policy.Situation, p *plan.Plan, room int) []render.Rehydrated {
	r := s.c.config.Recall
	if r == nil || r.Inject <= 0 || p.Empty() {
		return nil
	}
	var question *thread.Message
	for i := situation.Thread.Len() - 1; i >= 0 && question == nil; i-- {
		if m := situation.Thread.At(i); m.StartsTurn() {
			question = m
		}
	}
	if question == nil {
		return nil
	}
	k := &s.state().removedContent
	k.mu.Lock()
	last := k.injected
	k.mu.Unlock()
	if last.message == question.ID && last.version == l.version {
		return last.contents
	}
	query := injected.UserWords(question)
	hits, err := search(ctx, s, situation.Thread, p, l.version, query[:clip.Boundary(query, maxQuery)], recall.Options{Limit: maxInjected})
	if err != nil {
		return nil // a failed search stops nobody
	}
	reserve := r.Inject
	if room >= 0 {
		reserve = min(reserve, room)
	}
	shown := rehydrate.FromHits(hits, situation.Counter.Text, reserve)
	k.mu.Lock()
	k.injected = injection{message: question.ID, version: l.version, contents: shown}
	k.mu.Unlock()
	return shown
}

// maxQuery is how much of a user's message is used as the query, in bytes.
const maxQuery = 1000

// emitRecalled emits, once per user message, which recalled messages the prompt shows.
func emitRecalled(ctx context.Context, s *Session, situation *policy.Situation, shown []render.Rehydrated) {
	k := &s.state().removedContent
	k.mu.Lock()
	known := k.injected.wasEmitted
	k.injected.wasEmitted, k.injected.contents = known || len(shown) > 0, shown
	k.mu.Unlock()
	if known {
		return
	}
	for _, x := range shown {
		s.emit(ctx, event.Event{Type: event.Rehydrated, TokensAfter: situation.Counter.Text(x.Text()), Details: map[string]any{"trigger": "recall", "message_id": string(x.MessageID)}})
	}
}
