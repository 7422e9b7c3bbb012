package care

import (
	"context"
	"errors"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/store"
)

// Resealed is what Reseal has done.
type Resealed struct {
	Tenants   int `json:"tenants"`
	Records   int `json:"records"`
	Artifacts int `json:"artifacts"`
	// Erased counts tenants whose keys were erased and what was left of them was
	// removed.
	Erased int `json:"erased_tenants"`
}

// Reseal seals anew, under the newest key of each tenant, what is under an older one
// or in the clear, and removes what is left of tenants whose keys were erased. It
// needs Options.Artifacts with keys. What fails does not stop the rest, and after a
// crash Reseal goes on where it was.
func Reseal(ctx context.Context, db store.DB, o *Options) (r Resealed, err error) {
	defer wrap(&err, "Reseal")
	contents := o.artifacts(db)
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

// Sweep deletes artifacts whose time is over, but for those that a plan in force
// still points to, and removes what is left of tenants whose keys were erased. What
// fails does not stop the rest.
func Sweep(ctx context.Context, db store.DB, o *Options) (err error) {
	defer wrap(&err, "Sweep")
	contents := o.artifacts(db)
	_, err = each(ctx, db, func(tenant string) error {
		var failed error
		pointed := map[string]map[string]bool{}
		_, err := contents.Sweep(ctx, artifact.Requester{TenantID: tenant}, func(m artifact.Metadata) bool {
			ids, known := pointed[m.ThreadID]
			if !known {
				var err error
				if ids, err = pointers(ctx, db.Tenant(tenant).Plans, m.ThreadID); err != nil {
					failed = errors.Join(failed, err)
					return true // nobody knows
				}
				pointed[m.ThreadID] = ids
			}
			return ids[m.ID]
		})
		return errors.Join(err, failed)
	})
	return err
}

// pointers are the artifacts that a thread's plan in force points to.
func pointers(ctx context.Context, plans store.Plans, threadID string) (map[string]bool, error) {
	p, _, err := plans.Current(ctx, threadID)
	if err != nil || p == nil {
		return nil, err
	}
	ids := make(map[string]bool, len(p.Externalizations))
	for _, x := range p.Externalizations {
		ids[x.ArtifactID] = true
	}
	return ids, nil
}

// each does something for every tenant, and removes what is left of those whose keys
// were erased: nobody can read it, and nothing can be added to it. One that fails
// does not stop the others.
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
