package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Tools returns the tools that reach what plans removed, for callers that build the
// request around the prompts themselves; PrepareStep puts them into its prompts. There are
// none without Config.Recall and, unless it has ContextTools, before the first plan that removes
// something; after that they never change.
func (s *Session) Tools(ctx context.Context) (_ []prompt.Tool, err error) {
	defer nameCall(&err, "Tools", s.id)
	if err := readAllPlans(ctx, s); err != nil || s.c.config.Recall == nil || !offersTools(s) {
		return nil, err
	}
	return logSource{session: s}.handler(0).Tools(), nil
}

// Tools are all tools of Config.Recall that sessions may be offered, for frameworks that want to know
// them before the first request. Without Config.Recall nothing answers them.
func (c *Compactor) Tools() []prompt.Tool { return rehydrate.Tools(c.steers()) }

// offersTools reports whether the tools of Config.Recall are offered: where there is something to
// reach, or to steer.
func offersTools(s *Session) bool { return s.c.steers() || s.state().removedContent.hasAny(s.earlier) }

// Answer answers a call of a tool of Config.Recall that the model made in answer to p, from the
// session's own log and the earlier ones. The result is a message for the next
// Step. For any other tool, or without Config.Recall, ok is false. p tells how much the
// window can take; it may be nil.
//
// read_artifact accepts the id of any pointer that a plan of the session ever showed, the
// id of a message, an unambiguous beginning of either, and the path of a timeline's
// summary, which gives the digest of what was compacted. Problems with the id are told in
// the result; the error is that of ctx.
func (s *Session) Answer(ctx context.Context, p *Prepared, call thread.ToolCall) (result thread.Message, ok bool, err error) {
	if s.c.config.Recall == nil {
		return thread.Message{}, false, nil
	}
	room := 0
	if p != nil {
		room = p.limit
	}
	h := logSource{session: s}.handler(room)
	if h.Steering != nil {
		h.Steering = steering{s, p}
	}
	r, err := h.Answer(ctx, call)
	switch {
	case errors.Is(err, rehydrate.ErrUnknownTool):
		return thread.Message{}, false, nil
	case err != nil:
		return thread.Message{}, true, fmt.Errorf("palimpsest.Answer(%s): %w", s.id, err)
	}
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{r}}, true, nil
}

// logSource reads and searches what the plans of a thread removed.
type logSource struct {
	session *Session
	tokens  int // bounds one search
}

// handler answers calls of the recall tools, in answers that fit a prompt with so much
// room, in tokens; 0 if unknown.
func (f logSource) handler(room int) *rehydrate.Handler {
	f.tokens = searchTokens(room)
	h := &rehydrate.Handler{Artifacts: f, Recaller: f, MaxBytes: cmp.Or(max(f.session.c.config.Recall.MaxBytes, 0), rehydrate.DefaultMaxBytes)}
	if f.session.c.steers() {
		h.Steering = steering{session: f.session}
	}
	if fits := readBytes(room); fits > 0 {
		h.MaxBytes = min(h.MaxBytes, fits)
	}
	return h
}

// ownArtifact is what the thread itself has under that id.
func (f logSource) ownArtifact(ctx context.Context, id string) (rehydrate.Content, error) {
	s := f.session
	if err := readAllPlans(ctx, s); err != nil {
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
	switch {
	case err != nil:
		return c, err
	case s.c.config.Artifacts != nil && artifact.IsID(c.ID):
		return stored(c.ID)
	}
	for _, message := range c.MessageIDs {
		if _, err := f.access(ctx, c.Tool, message); err != nil {
			return rehydrate.Content{}, err
		}
	}
	return c, nil
}

// find looks the id up in the log.
func (f logSource) find(ctx context.Context, who artifact.Requester, id string) (rehydrate.Content, error) {
	log, err := f.session.c.config.Store.Log.Load(ctx, f.session.id)
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

// Metadata implements rehydrate.Source.
func (f logSource) Metadata(ctx context.Context, who artifact.Requester, id string) (artifact.Metadata, error) {
	m, _, err := f.Get(ctx, who, id)
	return m, err
}

// Get implements rehydrate.Source: the content behind a pointer or a message id.
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
	describeArtifact(s.c.config.Tools, &meta, c.Tool)
	meta.TTLSeconds = 0 // the log does not expire
	return meta, c.Text, nil
}

// Recall implements rehydrate.Recaller.
func (f logSource) Recall(ctx context.Context, query string, limit int) ([]recall.Hit, error) {
	return f.session.Recall(ctx, query, &recall.Options{Limit: limit, Tokens: f.tokens})
}

// Recall searches what the plan in force removed, and the earlier conversations. A nil o
// is the zero Options. It works without Config.Recall.
func (s *Session) Recall(ctx context.Context, query string, o *recall.Options) (_ []recall.Hit, err error) {
	defer nameCall(&err, "Recall", s.id)
	log, current, version, err := readLogAndPlan(ctx, s)
	if err != nil {
		return nil, err
	}
	return search(ctx, s, log, current, version, query, *cmp.Or(o, &recall.Options{}))
}

// searchTokens bounds the answer to one search, in tokens, given how large a request may be: less
// than usual where a few answers would fill it.
func searchTokens(room int) int {
	if room <= 0 {
		return recall.DefaultTokens
	}
	return min(recall.DefaultTokens, max(room/searchesPerWindow, minAnswerTokens))
}

// readBytes bounds the content that one call of read_artifact gives, in bytes; 0 where the
// room is not known. A larger answer would be externalized before the model sees it, and
// the model would read it again.
func readBytes(room int) int {
	if room <= 0 {
		return 0
	}
	return max(room/readsPerWindow, minAnswerTokens) * readBytesPerToken
}

const (
	// One search may take this part of the room, and one reading that.
	searchesPerWindow, readsPerWindow = 30, 5
	minAnswerTokens                   = 400 // tokens
	// readBytesPerToken is less than usual text has, since figures and identifiers have
	// less.
	readBytesPerToken = 3
)

// Artifact implements rehydrate.Artifacts: from the thread itself, else from the earlier
// ones.
func (f logSource) Artifact(ctx context.Context, id string) (rehydrate.Content, error) {
	c, err := f.ownArtifact(ctx, id)
	for _, earlier := range f.session.earlier {
		if !errors.Is(err, artifact.ErrNotFound) {
			return c, err
		}
		if found, failed := (logSource{session: f.session.c.Session(earlier)}).ownArtifact(ctx, id); !errors.Is(failed, artifact.ErrNotFound) {
			return found, failed
		}
	}
	return c, err
}
