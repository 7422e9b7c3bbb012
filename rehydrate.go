package palimpsest

import (
	"context"
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

func (c *Compactor) newRehydrator(id string, o recall.Rehydration, events event.Sink) *rehydrate.Rehydrator {
	if o.Disabled {
		return nil
	}
	o.Events = events
	var source rehydrate.Source = logSource{session: c.Session(id)}
	if c.config.Artifacts != nil {
		source = c.config.Artifacts
	}
	return rehydrate.New(source, c.config.Counter.Text, &o)
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
