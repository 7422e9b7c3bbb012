// Package upkeep is the work that a store needs now and then, done as jobs:
// artifacts whose time is over are deleted, what was encrypted under an older key
// is encrypted under the newest, and what is left of tenants whose keys were erased
// is removed.
//
//	u := &upkeep.Upkeep{Store: db, Artifacts: artifacts}
//	q, err := river.OnPostgres(ctx, pool, u.Handlers(), nil)
//	go u.Run(ctx, q)
//
// Any number of processes may do so for one store. A job that is done twice, or
// by two of them, changes nothing.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/store"
)

// The kinds of jobs, which are their keys too: there is one of each at a time.
const (
	SweepJob  = "sweep"
	ResealJob = "reseal"
)

// Upkeep is what is done for a store. It is safe for concurrent use.
type Upkeep struct {
	// Store and Artifacts are required.
	Store     store.DB
	Artifacts *artifact.Store
	// SweepPointed lets the sweep take what a plan in force still points to. By
	// default it stays until no plan does, although nobody may read it.
	SweepPointed bool
	// Reseal says that there are keys to seal with, so that what is not sealed
	// under the newest is sealed anew.
	Reseal bool
	// Every is the time between two rounds; 0 is an hour.
	Every time.Duration
	// Failed is told of a queue that does not take a job; the next round tries
	// again. Nil tells nobody.
	Failed func(error)
}

// Handlers returns the handlers of the jobs.
func (u *Upkeep) Handlers() job.Handlers {
	return job.Handlers{
		SweepJob:  func(ctx context.Context, _ job.Job) error { return u.each(ctx, u.sweep) },
		ResealJob: func(ctx context.Context, _ job.Job) error { return u.each(ctx, u.reseal) },
	}
}

// Run puts the jobs into a queue at once and then every round, until ctx is done.
func (u *Upkeep) Run(ctx context.Context, q job.Queue) {
	every := u.Every
	if every <= 0 {
		every = time.Hour
	}
	kinds := []string{SweepJob}
	if u.Reseal {
		kinds = append(kinds, ResealJob)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		for _, kind := range kinds {
			_, err := q.Put(ctx, job.Job{Kind: kind, Key: kind})
			if err != nil && ctx.Err() == nil && u.Failed != nil {
				u.Failed(err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// each does something for every tenant. One that fails does not stop the others.
func (u *Upkeep) each(ctx context.Context, do func(ctx context.Context, tenant string) error) error {
	var failed error
	for tenant, err := range u.Store.Tenants(ctx) {
		if err == nil {
			err = u.one(ctx, tenant, do)
		}
		failed = errors.Join(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// one does something for a tenant, or removes what is left of one whose keys were
// erased: nobody can read it, and nothing can be added to it.
func (u *Upkeep) one(ctx context.Context, tenant string, do func(ctx context.Context, tenant string) error) error {
	sealed, ok := u.Store.(store.Sealed)
	if !ok {
		return do(ctx, tenant)
	}
	erased, err := sealed.Erased(ctx, tenant)
	switch {
	case err != nil:
		return err
	case erased:
		return sealed.Erase(ctx, tenant)
	}
	return do(ctx, tenant)
}

func (u *Upkeep) sweep(ctx context.Context, tenant string) error {
	var live func(artifact.Metadata) bool
	var failed error
	if !u.SweepPointed {
		plans := u.Store.Tenant(tenant).Plans
		pointed := map[string]map[string]bool{}
		live = func(m artifact.Metadata) bool {
			ids, known := pointed[m.ThreadID]
			if !known {
				var err error
				if ids, err = pointers(ctx, plans, m.ThreadID); err != nil {
					failed = errors.Join(failed, err)
					return true // nobody knows
				}
				pointed[m.ThreadID] = ids
			}
			return ids[m.ID]
		}
	}
	_, err := u.Artifacts.Sweep(ctx, artifact.Requester{TenantID: tenant}, live)
	return errors.Join(err, failed)
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

func (u *Upkeep) reseal(ctx context.Context, tenant string) error {
	if !u.Reseal {
		return fmt.Errorf("upkeep: tenant %q: there are no keys to seal with", tenant)
	}
	_, err := u.Artifacts.Reseal(ctx, artifact.Requester{TenantID: tenant})
	if sealed, ok := u.Store.(store.Sealed); ok {
		_, records := sealed.Reseal(ctx, tenant)
		err = errors.Join(err, records)
	}
	return err
}
