package care

import (
	"context"
	"errors"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/store"
)

// The kinds of jobs that Upkeep queues. Each is also the key of its job, so that one
// of a kind waits or runs at a time.
const (
	SweepJob  = "sweep"
	ResealJob = "reseal"
)

// upkeepInterval is the time between two rounds.
const upkeepInterval = time.Hour

// Upkeep runs Sweep and Reseal as background jobs, once an hour:
//
//	u := &care.Upkeep{Store: db, Artifacts: artifacts}
//	q, err := river.OnPostgres(ctx, pool, u.Handlers(), nil)
//	go u.Run(ctx, q)
//
// Any number of processes may do so for one store: a job that runs twice changes
// nothing. It is safe for concurrent use.
type Upkeep struct {
	// Store and Artifacts are required.
	Store     store.DB
	Artifacts *artifact.Store
	// Reseal is set where there are keys. It also queues ResealJob.
	Reseal bool
	// OnError is told when the queue does not take a job; the next round tries again.
	// Nil ignores the error.
	OnError func(error)
}

// Handlers returns the handlers of the jobs.
func (u *Upkeep) Handlers() job.Handlers {
	return job.Handlers{
		SweepJob: func(ctx context.Context, _ job.Job) error { return Sweep(ctx, u.Store, u.Artifacts) },
		ResealJob: func(ctx context.Context, _ job.Job) error {
			_, err := Reseal(ctx, u.Store, u.Artifacts)
			return err
		},
	}
}

// Run queues the jobs now and then every hour, until ctx is done.
func (u *Upkeep) Run(ctx context.Context, q job.Queue) {
	kinds := []string{SweepJob}
	if u.Reseal {
		kinds = append(kinds, ResealJob)
	}
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	for {
		for _, kind := range kinds {
			_, err := q.Put(ctx, job.Job{Kind: kind, Key: kind})
			if err != nil && ctx.Err() == nil && u.OnError != nil {
				u.OnError(err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

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
