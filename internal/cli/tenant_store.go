package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/closest"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// tenantStore is what a store keeps for one tenant: whole conversations. What was taken
// out of their prompts follows from log and plans, and nothing is kept twice.
type tenantStore struct {
	db       *database
	tenantID string
	tenant   store.Tenant
}

// openTenant opens the store of a flag, with the master keys of the environment.
func (f *storeFlag) openTenant(ctx context.Context, existing bool) (*tenantStore, error) {
	db, err := f.open(ctx, existing)
	if err != nil {
		return nil, err
	}
	return f.tenantIn(db), nil
}

func (f *storeFlag) tenantIn(db *database) *tenantStore {
	return &tenantStore{db, f.tenant, db.Tenant(f.tenant)}
}

// withFreeID returns a conversation under the name that it is kept by: its own or, where
// the store has another conversation of that name, one with the message that
// differs first.
func (k *tenantStore) withFreeID(ctx context.Context, t *thread.Thread) (*thread.Thread, error) {
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
			return withThreadID(t, name)
		}
		name = t.ID() + "-" + shortID(uncopied.At(t, at).ID)
	}
	return nil, fmt.Errorf("the store has other conversations of the id %s: %w", t.ID(), store.ErrConflict)
}

func withThreadID(t *thread.Thread, name string) (*thread.Thread, error) {
	if name == t.ID() {
		return t, nil
	}
	return thread.New(name).Append(uncopied.Messages(t)...)
}

// maxSaveTries bounds how often a plan is committed behind another that was faster.
const maxSaveTries = 5

// save keeps a conversation and the plan that is in force for it.
func (k *tenantStore) save(ctx context.Context, t *thread.Thread, p *plan.Plan) error {
	if _, err := k.tenant.Log.Append(ctx, t.ID(), 0, uncopied.Messages(t)); err != nil {
		return err
	}
	for try := 1; ; try++ {
		current, version, err := k.tenant.Plans.Current(ctx, t.ID())
		if err != nil || samePlan(current, p) {
			return err
		}
		_, err = k.tenant.Plans.Commit(ctx, t.ID(), version, store.Commit{Plan: p})
		if !errors.Is(err, store.ErrConflict) || try == maxSaveTries {
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

// listRemoved returns what was taken out of the prompts of a thread, or of all, by thread
// and in order. Threads that cannot be read are named and hide nothing of others.
func (k *tenantStore) listRemoved(ctx context.Context, threadID string) (all []recall.Entry, unread []error, err error) {
	if threadID != "" {
		all, err = k.removedEntries(ctx, threadID)
		return all, nil, err
	}
	infos, err := store.AllThreads(ctx, k.tenant.Catalog)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range infos {
		entries, err := k.removedEntries(ctx, info.ID)
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

// removedEntries returns what any of the plans of a thread took out: prompts that were made
// before the newest still point to it.
func (k *tenantStore) removedEntries(ctx context.Context, threadID string) ([]recall.Entry, error) {
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
		if removesMore(p, all, at) {
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

// removesMore reports whether a plan says anything that newer ones did not.
func removesMore(p *plan.Plan, all []recall.Entry, at map[thread.ID]int) bool {
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

// findContent returns what is behind an id: an artifact, or all that a message of a
// conversation says that has plans. The error wraps artifact.ErrNotFound or
// artifact.ErrExpired, or is a *rehydrate.AmbiguousError.
func (k *tenantStore) findContent(ctx context.Context, id, threadID string) (rehydrate.Content, error) {
	c, err := k.getArtifact(ctx, id, threadID)
	if !errors.Is(err, artifact.ErrNotFound) {
		return c, err
	}
	infos, err := store.AllThreads(ctx, k.tenant.Catalog)
	if err != nil {
		return c, err
	}
	var found []rehydrate.Content
	var unread []error
	for _, info := range infos {
		if info.Plans == 0 || threadID != "" && threadID != info.ID {
			continue
		}
		of, err := k.lookup(ctx, info)
		switch {
		case ctx.Err() != nil:
			return c, ctx.Err()
		case err != nil:
			unread = append(unread, err)
		default:
			found = append(found, of.Find(id)...)
		}
	}
	c, err = rehydrate.Pick(id, found)
	if errors.Is(err, artifact.ErrNotFound) {
		if len(id) < closest.MinID {
			err = fmt.Errorf("%w; a part of an id needs at least %d characters", err, closest.MinID)
		}
		if len(unread) > 0 {
			err = fmt.Errorf("%w; it may be among what cannot be read: %w", err, errors.Join(unread...))
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

// getArtifact reads an artifact that is stored by itself.
func (k *tenantStore) getArtifact(ctx context.Context, id, threadID string) (rehydrate.Content, error) {
	s := rehydrate.StoredArtifacts{Source: k.db.artifacts(), Requester: artifact.Requester{TenantID: k.tenantID}, ThreadID: threadID}
	return s.Artifact(ctx, id)
}

// lookup knows the pointers of all plans of a thread: prompts that were made before
// the newest still show them.
func (k *tenantStore) lookup(ctx context.Context, info store.Info) (*rehydrate.Lookup, error) {
	log, err := k.tenant.Log.Load(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	plans := make([]*plan.Plan, info.Plans)
	for i := range plans {
		if plans[i], err = k.tenant.Plans.Plan(ctx, info.ID, i+1); err != nil {
			return nil, err
		}
	}
	return &rehydrate.Lookup{Thread: log, Pointers: rehydrate.Pointers(plans...)}, nil
}
