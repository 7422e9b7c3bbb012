package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// removedContent is what is known of all plans of a conversation, so that whatever one of
// them pointed to can be read: an agent may have noted a pointer long ago.
type removedContent struct {
	mu          sync.Mutex
	plansRead   int                    // the plans up to this version were read
	hasRemovals bool                   // one of them removed something
	pointers    map[string][]thread.ID // the messages that hold what was externalized, by artifact
	digests     map[string]*plan.Range // of timelines, by path
	building    *removedIndex          // being built; nil for none
	injected    injection
}

// offersTools reports whether the tools that reach what was removed are in the
// prompt: from the first plan on that removes something.
func (s *Session) offersTools() bool {
	if s.c.config.Recall == nil {
		return false
	}
	r := &s.state().removedContent
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasRemovals || len(s.earlier) > 0
}

// readPlans reads the plans up to a version that were not read yet.
func (s *Session) readPlans(ctx context.Context, version int) error {
	if s.c.config.Recall == nil {
		return nil
	}
	r := &s.state().removedContent
	r.mu.Lock()
	defer r.mu.Unlock()
	if version < r.plansRead { // the thread was deleted, and begun anew
		r.plansRead, r.hasRemovals, r.pointers, r.digests, r.building = 0, false, nil, nil, nil
		s.c.config.Memory.indexes.Delete(s.conversationKey())
	}
	for r.plansRead < version {
		p, err := s.c.config.Plans.Plan(ctx, s.id, r.plansRead+1)
		if err != nil {
			return err
		}
		r.add(p)
		r.plansRead++
	}
	return nil
}

func (r *removedContent) add(p *plan.Plan) {
	if r.pointers == nil {
		r.pointers, r.digests = map[string][]thread.ID{}, map[string]*plan.Range{}
	}
	r.hasRemovals = r.hasRemovals || !p.Empty()
	maps.Copy(r.pointers, rehydrate.Pointers(p))
	for i := range p.Summarizations {
		if s := p.Summarizations[i].Range; s != nil {
			r.digests[s.Path] = s
		}
	}
}

// Tools returns the tools that reach what plans removed, for callers who make
// the request around the prompts themselves: PrepareStep puts them into its
// prompts already. There are none without Config.Recall and before the first
// plan that removes something; from then on they stay and never change.
func (s *Session) Tools(ctx context.Context) ([]prompt.Tool, error) {
	_, version, err := store.CurrentUncopied(ctx, s.c.config.Plans, s.id, permit.Key{})
	if err == nil {
		err = s.readPlans(ctx, version)
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Tools(%s): %w", s.id, err)
	}
	if !s.offersTools() {
		return nil, nil
	}
	return s.handler(0).Tools(), nil
}

// withTools adds the tools that the caller has none of the same name of.
func (s *Session) withTools(tools []prompt.Tool) []prompt.Tool {
	if s.c.config.Recall == nil {
		return tools
	}
	out := slices.Clone(tools)
	for _, tool := range s.handler(0).Tools() {
		if !slices.ContainsFunc(tools, func(x prompt.Tool) bool { return x.Name == tool.Name }) {
			out = append(out, tool)
		}
	}
	return out
}

// Answer answers a call that the model made in answer to p: of the tools
// read_artifact and recall, from the session's own log and the earlier ones. The
// result is a message for the next Step. For a call of any other tool, or without
// Config.Recall, ok is false. p says how much the window can take; nil will do.
//
// read_artifact takes the id of any pointer that a plan of the session ever showed,
// the id of a message (of both the beginning will do where it means one alone), and
// the path of a timeline's summary, for which it gives the digest of what was
// compacted. What cannot be found or read is said in the result; the error is
// that of ctx.
func (s *Session) Answer(ctx context.Context, p *Prepared, call thread.ToolCall) (result thread.Message, ok bool, err error) {
	if s.c.config.Recall == nil {
		return thread.Message{}, false, nil
	}
	tokens := recall.DefaultTokens
	if p != nil {
		tokens = answerTokens(p.Step)
	}
	r, err := s.handler(tokens).Answer(ctx, call)
	switch {
	case errors.Is(err, rehydrate.ErrUnknownTool):
		return thread.Message{}, false, nil
	case err != nil:
		return thread.Message{}, true, fmt.Errorf("palimpsest.Answer(%s): %w", s.id, err)
	}
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{r}}, true, nil
}

func (s *Session) handler(tokens int) *rehydrate.Handler {
	from := logSource{session: s, tokens: tokens}
	return &rehydrate.Handler{Artifacts: from, Recaller: from, MaxBytes: s.c.config.Recall.MaxBytes}
}

// logSource reads and searches what the plans of a thread removed.
type logSource struct {
	session *Session
	tokens  int // how much one search may bring
}

// ownArtifact is what the thread itself has of that id.
func (f logSource) ownArtifact(ctx context.Context, id string) (rehydrate.Content, error) {
	s := f.session
	_, version, err := store.CurrentUncopied(ctx, s.c.config.Plans, s.id, permit.Key{})
	if err == nil {
		err = s.readPlans(ctx, version)
	}
	if err != nil {
		return rehydrate.Content{}, err
	}
	if digest := s.state().removedContent.digest(id); digest != nil {
		return rehydrate.Content{ID: digest.Path, ThreadID: s.id, Text: digest.Digest.Render()}, nil
	}
	stored := func(id string) (rehydrate.Content, error) {
		return rehydrate.StoredArtifacts{Source: s.c.config.Artifacts, Requester: s.c.config.Requester, ThreadID: s.id}.Artifact(ctx, id)
	}
	if s.c.config.Artifacts != nil && artifact.IsID(id) {
		return stored(id)
	}
	c, err := f.find(ctx, s.c.config.Requester, id)
	if err == nil && s.c.config.Artifacts != nil && artifact.IsID(c.ID) {
		return stored(c.ID)
	}
	return c, err
}

// find looks the id up in the log.
func (f logSource) find(ctx context.Context, who artifact.Requester, id string) (rehydrate.Content, error) {
	log, err := f.session.c.config.Log.Load(ctx, f.session.id)
	if err != nil {
		return rehydrate.Content{}, err
	}
	l := rehydrate.Lookup{Thread: log, Pointers: f.session.state().removedContent.copyPointers()}
	if artifacts := f.session.c.config.Artifacts; artifacts != nil {
		if l.Names, err = artifacts.Names(ctx, who.TenantID); err != nil {
			return rehydrate.Content{}, err
		}
	}
	return rehydrate.Pick(id, l.Find(id))
}

// digest is that of a timeline's path, nil for none.
func (r *removedContent) digest(path string) *plan.Range {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.digests[path]
}

// copyPointers are the pointers so far.
func (r *removedContent) copyPointers() map[string][]thread.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.pointers)
}

// Metadata implements rehydrate.Source.
func (f logSource) Metadata(ctx context.Context, who artifact.Requester, id string) (artifact.Metadata, error) {
	m, _, err := f.Get(ctx, who, id)
	return m, err
}

// Get implements rehydrate.Source: what a pointer of a plan, or the id of a
// message, stands for.
func (f logSource) Get(ctx context.Context, who artifact.Requester, id string) (artifact.Metadata, string, error) {
	s := f.session
	c, err := f.find(ctx, who, id)
	if err == nil && c.ID != id {
		err = artifact.ErrNotFound
	}
	if err != nil {
		return artifact.Metadata{}, "", fmt.Errorf("thread %s: %w", s.id, err)
	}
	meta := artifact.Metadata{ID: id, ThreadID: s.id, TenantID: who.TenantID, Sensitivity: s.c.config.Sensitivity, MessageIDs: c.MessageIDs, Turn: c.Turn, Bytes: len(c.Text)}
	s.describeArtifact(&meta, c.Tool)
	meta.TTLSeconds = 0 // the log keeps it
	return meta, c.Text, nil
}

// Recall implements rehydrate.Recaller.
func (f logSource) Recall(ctx context.Context, query string, limit int) ([]recall.Hit, error) {
	return f.session.recall(ctx, query, recall.Options{Limit: limit, Tokens: f.tokens})
}

// Recall searches what the plan in force removed, and what the earlier
// conversations hold. A nil o is the zero Options. It needs no Config.Recall.
func (s *Session) Recall(ctx context.Context, query string, o *recall.Options) ([]recall.Hit, error) {
	hits, err := s.recall(ctx, query, *cmp.Or(o, &recall.Options{}))
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Recall(%s): %w", s.id, err)
	}
	return hits, nil
}

func (s *Session) recall(ctx context.Context, query string, o recall.Options) ([]recall.Hit, error) {
	log, err := s.c.config.Log.Load(ctx, s.id)
	if err != nil {
		return nil, err
	}
	current, version, err := store.CurrentUncopied(ctx, s.c.config.Plans, s.id, permit.Key{})
	if err != nil {
		return nil, err
	}
	return s.search(ctx, log, current, version, query, o)
}

// answerTokens is how much one search may bring, in tokens: less than usual where
// the window is so small that a few answers would fill it.
func answerTokens(step Step) int {
	room := step.Budget
	room = cmp.Or(room, step.Window-step.Output)
	if room <= 0 {
		return recall.DefaultTokens
	}
	return min(recall.DefaultTokens, max(room/answersPerWindow, minAnswerTokens))
}

const (
	answersPerWindow = 30  // of the room: one answer's part
	minAnswerTokens  = 400 // tokens
)

// search finds removed messages by words, and by meaning where there is an
// Embedder. One that fails leaves the words.
func (s *Session) search(ctx context.Context, log *thread.Thread, p *plan.Plan, version int, query string, o recall.Options) ([]recall.Hit, error) {
	index, err := s.indexFor(ctx, log, p, version)
	if err != nil {
		return nil, err
	}
	if s.c.search != nil {
		hits, err := s.c.search.Search(ctx, index, query, &o)
		if err == nil || ctx.Err() != nil {
			return hits, ctx.Err()
		}
	}
	return index.Search(query, &o), nil
}

func (c *Compactor) newRehydrator(id string, o rehydrate.Options, events event.Sink) *rehydrate.Rehydrator {
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

// pendingEvents are events of contents that may not stand in the prompt yet.
type pendingEvents struct {
	mu     sync.Mutex
	events []event.Event
}

// Emit keeps an event.
func (w *pendingEvents) Emit(_ context.Context, e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// take returns what was kept, and keeps it no longer.
func (w *pendingEvents) take() []event.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.events
	w.events = nil
	return out
}

// emitRehydrated emits the events of contents that came back; one that found no room in
// the prompt was blocked.
func (s *Session) emitRehydrated(ctx context.Context, shown []render.Rehydrated) {
	to := s.c.config.Events
	if r := s.c.config.Recall; r != nil && r.Rehydrate.Events != nil {
		to = r.Rehydrate.Events
	}
	for _, e := range s.state().pendingEvents.take() {
		if e.Type == event.Rehydrated && !slices.ContainsFunc(shown, func(r render.Rehydrated) bool { return r.ArtifactID == e.Details["artifact"] }) {
			e.Type, e.TokensAfter = event.Blocked, 0
			e.Details["reason"] = "no_room"
			delete(e.Details, "tokens")
		}
		e.Policy = s.c.config.Policy.Name()
		event.Emit(ctx, to, e)
	}
}
