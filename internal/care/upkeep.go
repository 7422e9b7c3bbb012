package care

import (
	"context"
	"errors"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/store"
)

// Resealed counts what Reseal has done.
type Resealed struct {
	Tenants   int `json:"tenants"`
	Records   int `json:"records"`
	Artifacts int `json:"artifacts"`
	// Erased counts tenants whose keys were erased. Their remaining data was removed.
	Erased int `json:"erased_tenants"`
}

// Reseal encrypts, under the newest data key of each tenant, all data that is under an
// older one or not encrypted, and removes the data of tenants whose keys were erased. It
// needs artifacts with keys. An error does not stop the rest, and after a crash it
// may be called again.
func Reseal(ctx context.Context, db store.DB, artifacts *artifact.Store) (r Resealed, err error) {
	defer wrap(&err, "Reseal")
	contents := contentsOf(db, artifacts)
	r.Erased, err = each(ctx, db, func(tenant string) error {
		r.Tenants++
		n, err := 0, error(nil)
		if records, ok := db.(store.Sealed); ok {
			n, err = records.Reseal(ctx, tenant)
		}
		r.Records += n
		m, contentsErr := contents.Reseal(ctx, artifact.Requester{TenantID: tenant})
		r.Artifacts += m
		return errors.Join(err, contentsErr)
	})
	return r, err
}

// Sweep deletes expired artifacts that no current plan points to, and removes the data of
// tenants whose keys were erased. An error does not stop the rest.
func Sweep(ctx context.Context, db store.DB, artifacts *artifact.Store) (err error) {
	defer wrap(&err, "Sweep")
	contents := contentsOf(db, artifacts)
	_, err = each(ctx, db, func(tenant string) error {
		var failed error
		pointed := map[string]map[string]bool{}
		_, err := contents.Sweep(ctx, artifact.Requester{TenantID: tenant}, func(m artifact.Metadata) bool {
			ids, known := pointed[m.ThreadID]
			if !known {
				var err error
				if ids, err = pointers(ctx, db.Tenant(tenant).Plans, m.ThreadID); err != nil {
					failed = errors.Join(failed, err)
					return true // it may be pointed to
				}
				pointed[m.ThreadID] = ids
			}
			return ids[m.ID]
		})
		return errors.Join(err, failed)
	})
	return err
}

// pointers returns the artifacts that the current plan of a thread points to.
func pointers(ctx context.Context, plans store.Plans, threadID string) (map[string]bool, error) {
	p, _, err := plans.Current(ctx, threadID)
	if err != nil || p == nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, x := range p.Externalized() {
		ids[x.ArtifactID] = true
	}
	return ids, nil
}

// each calls do for every tenant, and removes the data of those whose keys were erased,
// which nobody can read. An error does not stop the rest.
func each(ctx context.Context, db store.DB, do func(tenant string) error) (removed int, err error) {
	for t, failed := range tenants(ctx, db) {
		switch {
		case failed != nil:
		case t.erased:
			removed++
			failed = db.(store.Sealed).Erase(ctx, t.name)
		default:
			failed = do(t.name)
		}
		err = errors.Join(err, failed)
		if ctx.Err() != nil {
			break
		}
	}
	return removed, err
}
