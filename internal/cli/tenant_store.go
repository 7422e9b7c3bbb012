package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// tenantStore keeps one tenant's conversations, whole, with their plans. What was removed
// from prompts follows from these two.
type tenantStore struct {
	store.Tenant
	id string
	db *database
}

// withFreeID returns the conversation under the id to store it by: its own or, if the store
// has a different conversation of that id, the id plus that of the first message that
// differs.
func (k *tenantStore) withFreeID(ctx context.Context, t *thread.Thread) (*thread.Thread, error) {
	id := t.ID()
	for range t.Len() + 1 {
		stored, err := k.Log.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		at, common := 0, min(t.Len(), stored.Len())
		for at < common && t.At(at).ID == stored.At(at).ID {
			at++
		}
		if at == common {
			return withThreadID(t, id)
		}
		id = t.ID() + "-" + shortID(t.At(at).ID)
	}
	return nil, fmt.Errorf("the store has other conversations of the id %s: %w", t.ID(), store.ErrConflict)
}

func withThreadID(t *thread.Thread, id string) (*thread.Thread, error) {
	if id == t.ID() {
		return t, nil
	}
	return thread.New(id).Append(t.Messages()...)
}

// maxSaveTries limits how often save tries to commit a plan when others commit too.
const maxSaveTries = 5

// saved says what became of a conversation and its plan in the store.
type saved struct {
	Thread string `json:"thread_id"`
	// Version is that of the plan, which is in force; Counter counted its tokens.
	Version int    `json:"plan_version"`
	Counter string `json:"counter,omitempty"`
	// Replaced is the plan that was in force before; nil for none, or if it was this one.
	Replaced *earlierPlan `json:"replaced,omitempty"`
	// More is how many messages the stored conversation has after those of the file. The
	// plan shows them as they are.
	More int `json:"more_messages,omitempty"`
	// Explain is the shell command that shows all plans of the stored conversation. It is
	// empty if there is no other to see, or if a file or session has the same id.
	Explain string `json:"explain,omitempty"`
	// Recall is the shell command that searches what was removed.
	Recall string `json:"recall,omitempty"`
}

// earlierPlan is one of the plans of a stored conversation, with the size of the prompt that it
// was made for. The zero value is no plan.
type earlierPlan struct {
	Version int    `json:"plan_version"`
	Tokens  int    `json:"tokens"`
	Counter string `json:"counter,omitempty"`
}

func earlier(version int, p *plan.Plan) *earlierPlan {
	return &earlierPlan{version, p.CompactedTokens, p.Counter}
}

// size says how large the prompt was, beside figures of that counter.
func (e earlierPlan) size(counter string) string {
	switch {
	case e.Tokens == 0: // it hid nothing
		return "everything"
	case e.Counter == counter || e.Counter == "":
		return number(e.Tokens) + " tokens"
	}
	return number(e.Tokens) + " tokens, counted with " + e.Counter
}

// print says which plan is in force now, and what that changed.
func (s *saved) print(p *printer) {
	if s == nil {
		return
	}
	text := fmt.Sprintf("stored as %s: plan %d in force", s.Thread, s.Version)
	if before := s.Replaced; before != nil {
		text += fmt.Sprintf(" (before it plan %d: %s)", before.Version, before.size(s.Counter))
	}
	p.text("%s", text)
	if s.More > 0 {
		p.text("note: the store holds %s more of this session; under this plan they stay as they are", plural(s.More, "message"))
	}
	for _, see := range []string{s.Explain, s.Recall} {
		if see != "" {
			p.line("see: %s", see)
		}
	}
}

// save stores a conversation and makes the plan the one in force. A stored conversation that
// is longer stays as it is.
func (k *tenantStore) save(ctx context.Context, t *thread.Thread, p *plan.Plan) (*saved, error) {
	log, err := k.Log.Append(ctx, t.ID(), 0, t.Messages())
	if err != nil {
		return nil, err
	}
	made := &saved{Thread: t.ID(), Counter: p.Counter, More: log.Len() - t.Len()}
	for try := 1; ; try++ {
		current, version, err := k.Plans.Current(ctx, t.ID())
		if err != nil {
			return nil, err
		}
		if made.Version = version; samePlan(current, p) {
			return made, nil
		}
		made.Version, err = k.Plans.Commit(ctx, t.ID(), version, store.Commit{Plan: p})
		switch {
		case err == nil:
			if current != nil {
				made.Replaced = earlier(version, current)
			}
			return made, nil
		case !errors.Is(err, store.ErrConflict) || try == maxSaveTries:
			return nil, err
		}
	}
}

// samePlan compares plans without the time at which they were made.
func samePlan(a, b *plan.Plan) bool {
	if a == nil {
		return false
	}
	same := *a
	same.CreatedAt = b.CreatedAt
	x, err := json.Marshal(same)
	y, failed := json.Marshal(b)
	return errors.Join(err, failed) == nil && bytes.Equal(x, y)
}

// listEntries returns such messages of a thread, or of all threads, in order. unread names the threads that could not be read, unless that is all of them.
func (k *tenantStore) listEntries(ctx context.Context, threadID string, such listing) (all []recall.Entry, unread []error, err error) {
	if threadID != "" {
		all, err = k.entries(ctx, threadID, such)
		return all, nil, err
	}
	unread, err = k.eachThread(ctx, func(info store.Info) error {
		entries, err := k.entries(ctx, info.ID, such)
		all = append(all, entries...)
		return err
	})
	if err == nil && len(all) == 0 {
		err = errors.Join(unread...)
	}
	return all, unread, err
}

// eachThread calls do with each conversation, ordered by id. unread are the errors of do.
func (k *tenantStore) eachThread(ctx context.Context, do func(store.Info) error) (unread []error, err error) {
	infos, err := care.AllThreads(ctx, k.Catalog)
	for i := 0; i < len(infos) && err == nil; i++ {
		if failed := do(infos[i]); failed != nil {
			unread = append(unread, failed)
		}
		err = ctx.Err()
	}
	return unread, err
}

// listing chooses messages of a thread by its plans, of which the first tells most of a message.
type listing func(*thread.Thread, ...*plan.Plan) []recall.Entry

// shown lists what no plan removes.
func shown(t *thread.Thread, plans ...*plan.Plan) []recall.Entry {
	hidden := map[thread.ID]bool{}
	for _, e := range recall.Removed(t, plans...) {
		hidden[e.MessageID] = true
	}
	return slices.DeleteFunc(recall.All(t), func(e recall.Entry) bool { return hidden[e.MessageID] })
}

// entries returns such messages of a thread that has plans. What any of them removed counts as removed: older prompts
// still point to it.
func (k *tenantStore) entries(ctx context.Context, threadID string, such listing) ([]recall.Entry, error) {
	_, version, err := k.Plans.Current(ctx, threadID)
	if err != nil || version == 0 {
		return nil, err
	}
	log, plans, err := k.load(ctx, store.Info{ID: threadID, Plans: version})
	if err != nil {
		return nil, err
	}
	slices.Reverse(plans) // the newest counts
	return such(log, plans...), nil
}

// findContent returns the content of an id: of an artifact, or of a message in a
// conversation that has plans. The error wraps artifact.ErrNotFound or
// artifact.ErrExpired, or is a *rehydrate.AmbiguousError.
func (k *tenantStore) findContent(ctx context.Context, id, threadID string) (rehydrate.Content, error) {
	c, err := k.getArtifact(ctx, id, threadID)
	if !errors.Is(err, artifact.ErrNotFound) {
		return c, err
	}
	var found []rehydrate.Content
	unread, err := k.eachThread(ctx, func(info store.Info) error {
		if info.Plans == 0 || threadID != "" && threadID != info.ID {
			return nil
		}
		log, plans, err := k.load(ctx, info)
		if err == nil {
			ids := &rehydrate.Lookup{Thread: log, Pointers: rehydrate.Pointers(plans...)} // older prompts still show those of all plans
			found = append(found, ids.Find(id)...)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	c, err = rehydrate.Pick(id, found)
	if errors.Is(err, artifact.ErrNotFound) {
		if len(id) < suggest.MinID {
			err = fmt.Errorf("%w; a part of an id needs at least %d characters", err, suggest.MinID)
		}
		if len(unread) > 0 {
			err = fmt.Errorf("%w; it may be in a thread that cannot be read: %w", err, errors.Join(unread...))
		}
	}
	if err != nil || c.ID == id {
		return c, err
	}
	if whole, err := k.getArtifact(ctx, c.ID, threadID); !errors.Is(err, artifact.ErrNotFound) {
		return whole, err
	}
	return c, nil
}

func (k *tenantStore) getArtifact(ctx context.Context, id, threadID string) (rehydrate.Content, error) {
	s := rehydrate.StoredArtifacts{Source: k.db.artifacts(), Requester: artifact.Requester{TenantID: k.id}, ThreadID: threadID}
	return s.Artifact(ctx, id)
}

// load reads a thread and all its plans, the oldest first.
func (k *tenantStore) load(ctx context.Context, info store.Info) (log *thread.Thread, plans []*plan.Plan, err error) {
	log, err = k.Log.Load(ctx, info.ID)
	for v := 1; err == nil && v <= info.Plans; v++ {
		var p *plan.Plan
		p, err = k.Plans.Plan(ctx, info.ID, v)
		plans = append(plans, p)
	}
	return log, plans, err
}
