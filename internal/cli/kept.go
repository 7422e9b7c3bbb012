package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// kept is what a store keeps for one tenant: whole conversations. What was taken
// out of their prompts follows from log and plans, and nothing is kept twice.
type kept struct {
	db       *database
	tenantID string
	tenant   store.Tenant
}

// kept opens the store of a flag, with the master keys of the environment.
func (f *storeFlag) kept(ctx context.Context, existing bool) (*kept, error) {
	db, err := f.open(ctx, existing)
	if err != nil {
		return nil, err
	}
	return f.keptIn(db), nil
}

func (f *storeFlag) keptIn(db *database) *kept { return &kept{db, f.tenant, db.Tenant(f.tenant)} }

// under returns a conversation under the name that it is kept by: its own or, where
// the store has another conversation of that name, one with the message that
// differs first.
func (k *kept) under(ctx context.Context, t *thread.Thread) (*thread.Thread, error) {
	name := t.ID()
	for range t.Len() + 1 {
		held, err := k.tenant.Log.Load(ctx, name)
		if err != nil {
			return nil, err
		}
		at := 0
		for at < min(t.Len(), held.Len()) && uncopied.At(t, at).ID == uncopied.At(held, at).ID {
			at++
		}
		if at == min(t.Len(), held.Len()) {
			return renamed(t, name)
		}
		name = t.ID() + "-" + shortID(uncopied.At(t, at).ID)
	}
	return nil, fmt.Errorf("the store has other conversations of the id %s: %w", t.ID(), store.ErrConflict)
}

func renamed(t *thread.Thread, name string) (*thread.Thread, error) {
	if name == t.ID() {
		return t, nil
	}
	return thread.New(name).Append(uncopied.Messages(t)...)
}

// saveTries bounds how often a plan is committed behind another that was faster.
const saveTries = 5

// save keeps a conversation and the plan that is in force for it.
func (k *kept) save(ctx context.Context, t *thread.Thread, p *plan.Plan) error {
	if _, err := k.tenant.Log.Append(ctx, t.ID(), 0, uncopied.Messages(t)); err != nil {
		return err
	}
	for try := 1; ; try++ {
		current, version, err := k.tenant.Plans.Current(ctx, t.ID())
		if err != nil || samePlan(current, p) {
			return err
		}
		_, err = k.tenant.Plans.Commit(ctx, t.ID(), version, store.Commit{Plan: p})
		if !errors.Is(err, store.ErrConflict) || try == saveTries {
			return err
		}
	}
}

// samePlan compares plans but for when they were made.
func samePlan(a, b *plan.Plan) bool {
	if a == nil {
		return false
	}
	left, right := *a, *b
	left.CreatedAt, right.CreatedAt = time.Time{}, time.Time{}
	x, xErr := json.Marshal(left)
	y, yErr := json.Marshal(right)
	return xErr == nil && yErr == nil && bytes.Equal(x, y)
}

// list returns what was taken out of the prompts of a thread, or of all, by thread
// and in order. Threads that cannot be read are named and hide nothing of others.
func (k *kept) list(ctx context.Context, threadID string) (all []recall.Entry, unread []error, err error) {
	if threadID != "" {
		all, err = k.removed(ctx, threadID)
		return all, nil, err
	}
	infos, err := k.infos(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range infos {
		entries, err := k.removed(ctx, info.ID)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			unread = append(unread, err)
		}
		all = append(all, entries...)
	}
	if len(all) == 0 && len(unread) > 0 {
		return nil, nil, errors.Join(unread...)
	}
	return all, unread, nil
}

// infos lists the threads, by id.
func (k *kept) infos(ctx context.Context) (all []store.Info, err error) {
	for after := ""; ; {
		page, err := k.tenant.Catalog.Threads(ctx, after, store.MaxLimit)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = page[len(page)-1].ID
	}
}

// removed returns what any of the plans of a thread took out: prompts that were made
// before the newest still point to it.
func (k *kept) removed(ctx context.Context, threadID string) ([]recall.Entry, error) {
	p, version, err := k.tenant.Plans.Current(ctx, threadID)
	if err != nil || p == nil {
		return nil, err
	}
	log, err := k.tenant.Log.Load(ctx, threadID)
	if err != nil {
		return nil, err
	}
	var all []recall.Entry
	at := map[thread.ID]int{}
	for {
		if takesOutMore(p, all, at) {
			for _, e := range recall.Removed(log, p) {
				if n, known := at[e.MessageID]; !known {
					at[e.MessageID] = len(all)
					all = append(all, e)
				} else if all[n].ArtifactID == "" {
					all[n].ArtifactID = e.ArtifactID
				}
			}
		}
		if version--; version == 0 {
			break
		}
		if p, err = k.tenant.Plans.Plan(ctx, threadID, version); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b recall.Entry) int { return cmp.Compare(a.Position, b.Position) })
	return all, nil
}

// takesOutMore reports whether a plan says anything that newer ones did not.
func takesOutMore(p *plan.Plan, all []recall.Entry, at map[thread.ID]int) bool {
	for id := range p.Actions() {
		if _, known := at[id]; !known {
			return true
		}
	}
	for _, x := range p.Externalizations {
		for _, id := range x.Span.MessageIDs {
			if all[at[id]].ArtifactID == "" {
				return true
			}
		}
	}
	return false
}

// content is what was taken out, in full.
type content struct {
	// ID is the whole id of the artifact or message that was asked for.
	ID       string `json:"id"`
	ThreadID string `json:"thread_id"`
	// MessageIDs are the messages that the text is of, in thread order.
	MessageIDs []thread.ID `json:"message_ids"`
	Turn       int         `json:"turn"`
	Tool       string      `json:"tool,omitempty"`
	Text       string      `json:"text"`
}

// minID is how many characters of an id are enough to ask for it, where they mean
// one alone.
const minID = 6

// find returns what is behind an id: an artifact, or all that a removed message
// said. The error wraps artifact.ErrNotFound or artifact.ErrExpired, or is a
// *rehydrate.AmbiguousError.
func (k *kept) find(ctx context.Context, id, threadID string) (*content, error) {
	if c, err := k.artifact(ctx, id, threadID); c != nil || err != nil {
		return c, err
	}
	entries, unread, err := k.list(ctx, threadID)
	if err != nil {
		return nil, err
	}
	found := grouped(entries, func(name string) bool { return name == id })
	if len(found) == 0 && len(id) >= minID {
		found = grouped(entries, func(name string) bool { return strings.HasPrefix(name, id) })
	}
	if len(found) == 0 {
		if c, err := k.named(ctx, id, threadID); c != nil || err != nil {
			return c, err
		}
		err := fmt.Errorf("%q: %w", id, artifact.ErrNotFound)
		if len(id) < minID {
			err = fmt.Errorf("%w; a part of an id needs at least %d characters", err, minID)
		}
		if len(unread) > 0 {
			err = fmt.Errorf("%w; it may be among what cannot be read: %w", err, errors.Join(unread...))
		}
		return nil, err
	}
	if len(found) > 1 {
		several := &rehydrate.AmbiguousError{ID: id}
		for _, f := range found {
			name := f.id
			if slices.ContainsFunc(found, func(other group) bool { return other.id == f.id && other.thread != f.thread }) {
				name += fmt.Sprintf(" (thread %s)", f.thread)
			}
			several.Candidates = append(several.Candidates, name)
		}
		return nil, several
	}
	one := found[0]
	if c, err := k.artifact(ctx, one.id, threadID); c != nil || err != nil {
		return c, err
	}
	first := one.entries[0]
	c := &content{ID: one.id, ThreadID: one.thread, Turn: first.Turn, Tool: first.Tool, Text: one.text()}
	for _, e := range one.entries {
		c.MessageIDs = append(c.MessageIDs, e.MessageID)
	}
	if first.ArtifactID == one.id && len(one.entries) == 1 {
		said, err := k.named(ctx, one.id, one.thread)
		if err != nil {
			return nil, err
		}
		if said != nil {
			c.Text = said.Text
		}
	}
	return c, nil
}

// artifact reads one that is kept by itself; nil where there is none.
func (k *kept) artifact(ctx context.Context, id, threadID string) (*content, error) {
	m, text, err := k.db.artifacts().Get(ctx, artifact.Requester{TenantID: k.tenantID}, id)
	switch {
	case errors.Is(err, artifact.ErrNotFound), err == nil && threadID != "" && m.ThreadID != threadID:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &content{ID: id, ThreadID: m.ThreadID, MessageIDs: m.MessageIDs, Turn: m.Turn, Tool: m.Tool, Text: text}, nil
}

// named looks through the conversations for what has an artifact's id: a summary may
// name what a plan before it externalized. It is nil where nothing has.
func (k *kept) named(ctx context.Context, id, threadID string) (*content, error) {
	if !artifact.IsID(id) {
		return nil, nil
	}
	infos, err := k.infos(ctx)
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if threadID != "" && threadID != info.ID {
			continue
		}
		log, err := k.tenant.Log.Load(ctx, info.ID)
		if err != nil {
			continue // told with what is listed
		}
		for _, m := range uncopied.All(log) {
			if text, ok := recall.Content(m, func(text string) bool { return artifact.IDOf(info.ID, text) == id }); ok {
				r, _ := m.Result()
				return &content{ID: id, ThreadID: info.ID, MessageIDs: []thread.ID{m.ID}, Turn: m.Turn, Tool: r.Tool, Text: text}, nil
			}
		}
	}
	return nil, nil
}

// group are the entries of one thread that one id means.
type group struct {
	id, thread string
	entries    []recall.Entry
}

func (g group) text() string {
	var texts []string
	for _, e := range g.entries {
		texts = append(texts, e.Text)
	}
	return strings.Join(texts, "\n")
}

// grouped groups the entries whose ids are wanted. Where two threads hold the same
// message, saying the same, it is one.
func grouped(entries []recall.Entry, wanted func(id string) bool) []group {
	found := map[[2]string]group{}
	for _, e := range entries {
		for _, id := range []string{string(e.MessageID), e.ArtifactID} {
			if id != "" && wanted(id) {
				key := [2]string{id, e.ThreadID}
				found[key] = group{id, e.ThreadID, append(found[key].entries, e)}
			}
		}
	}
	groups := slices.SortedFunc(maps.Values(found), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.thread, b.thread))
	})
	return slices.CompactFunc(groups, func(a, b group) bool { return a.id == b.id && a.text() == b.text() })
}
