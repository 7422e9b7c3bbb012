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
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// reader finds what was taken out of prompts, in a folder or in a database.
type reader interface {
	Artifact(ctx context.Context, id, threadID string) (*dir.Content, error)
	List(ctx context.Context, threadID string) ([]recall.Entry, []dir.Damage, error)
	Recall(ctx context.Context, query string, o *recall.Options) ([]recall.Hit, []dir.Damage, error)
	Close() error
}

// keptDB is a store of whole conversations: what was taken out of their prompts
// follows from log and plan, and nothing is kept twice.
type keptDB struct {
	db     store.DB
	tenant store.Tenant
}

var _ reader = keptDB{}

func openKept(ctx context.Context, name, tenant string, existing bool) (keptDB, error) {
	db, err := openDB(ctx, name, existing, keysFlag{}, masterFlag{})
	if err != nil {
		return keptDB{}, err
	}
	return keptDB{db, db.Tenant(tenant)}, nil
}

// Close implements reader.
func (k keptDB) Close() error { return k.db.Close() }

// saveTries bounds how often a plan is committed behind another that was faster.
const saveTries = 5

// save keeps a conversation and the plan that is in force for it. A
// conversation that went on elsewhere in another way is an error.
func (k keptDB) save(ctx context.Context, t *thread.Thread, p *plan.Plan) error {
	if _, err := k.tenant.Log.Append(ctx, t.ID(), 0, uncopied.Messages(t)); err != nil {
		if errors.Is(err, store.ErrConflict) {
			err = fmt.Errorf("the store has another conversation of the id %s: %w", t.ID(), err)
		}
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

// List implements reader: what the plans in force hide, of one thread or all.
func (k keptDB) List(ctx context.Context, threadID string) ([]recall.Entry, []dir.Damage, error) {
	if threadID != "" {
		entries, err := k.removed(ctx, threadID)
		return entries, nil, err
	}
	var all []recall.Entry
	for after := ""; ; {
		page, err := k.tenant.Catalog.Threads(ctx, after, 0)
		if err != nil || len(page) == 0 {
			return all, nil, err
		}
		for _, info := range page {
			entries, err := k.removed(ctx, info.ID)
			if err != nil {
				return nil, nil, err
			}
			all = append(all, entries...)
			after = info.ID
		}
	}
}

func (k keptDB) removed(ctx context.Context, threadID string) ([]recall.Entry, error) {
	p, _, err := k.tenant.Plans.Current(ctx, threadID)
	if err != nil || p.Empty() {
		return nil, err
	}
	log, err := k.tenant.Log.Load(ctx, threadID)
	if err != nil {
		return nil, err
	}
	return recall.Removed(log, p), nil
}

// Recall implements reader.
func (k keptDB) Recall(ctx context.Context, query string, o *recall.Options) ([]recall.Hit, []dir.Damage, error) {
	entries, damage, err := k.List(ctx, o.ThreadID)
	if err != nil {
		return nil, nil, err
	}
	return recall.NewIndex(entries).Search(query, o), damage, nil
}

// minID is how many characters of an id are enough to ask for it.
const minID = 6

// Artifact implements reader.
func (k keptDB) Artifact(ctx context.Context, id, threadID string) (*dir.Content, error) {
	entries, _, err := k.List(ctx, threadID)
	if err != nil {
		return nil, err
	}
	found := map[[2]string][]recall.Entry{}
	for _, whole := range []bool{true, false} {
		if len(found) > 0 || !whole && len(id) < minID {
			break
		}
		for _, e := range entries {
			for _, name := range []string{string(e.MessageID), e.ArtifactID} {
				if name != "" && (name == id || !whole && strings.HasPrefix(name, id)) {
					key := [2]string{name, e.ThreadID}
					found[key] = append(found[key], e)
				}
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(found), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	switch len(names) {
	case 0:
		return nil, fmt.Errorf("%q: %w", id, artifact.ErrNotFound)
	case 1:
		return contentOf(names[0][0], found[names[0]]), nil
	}
	several := &dir.AmbiguousError{ID: id}
	for _, name := range names {
		several.Candidates = append(several.Candidates, fmt.Sprintf("%s (thread %s)", name[0], name[1]))
	}
	return nil, several
}

// contentOf puts the messages behind one id together.
func contentOf(id string, entries []recall.Entry) *dir.Content {
	c := &dir.Content{ID: id, ThreadID: entries[0].ThreadID, Turn: entries[0].Turn, Tool: entries[0].Tool}
	var texts []string
	for _, e := range entries {
		c.MessageIDs = append(c.MessageIDs, e.MessageID)
		texts = append(texts, e.Text)
	}
	c.Text = strings.Join(texts, "\n")
	return c
}
