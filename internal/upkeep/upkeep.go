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
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/care"
)

// The kinds of jobs, which are their keys too: there is one of each at a time.
const (
	SweepJob  = "sweep"
	ResealJob = "reseal"
)

// interval is the time between two rounds.
const interval = time.Hour

// Upkeep is what is done for a store. It is safe for concurrent use.
type Upkeep struct {
	// Store and Artifacts are required.
	Store     store.DB
	Artifacts *artifact.Store
	// Reseal says that there are keys to seal with, so that what is not sealed
	// under the newest is sealed anew.
	Reseal bool
	// OnError is told of a queue that does not take a job; the next round tries
	// again. Nil tells nobody.
	OnError func(error)
}

// Handlers returns the handlers of the jobs.
func (u *Upkeep) Handlers() job.Handlers {
	o := &care.Options{Artifacts: u.Artifacts}
	return job.Handlers{
		SweepJob: func(ctx context.Context, _ job.Job) error { return care.Sweep(ctx, u.Store, o) },
		ResealJob: func(ctx context.Context, _ job.Job) error {
			if !u.Reseal {
				return errors.New("upkeep: there are no keys to seal with")
			}
			_, err := care.Reseal(ctx, u.Store, o)
			return err
		},
	}
}

// Run puts the jobs into a queue at once and then every hour, until ctx is done.
func (u *Upkeep) Run(ctx context.Context, q job.Queue) {
	kinds := []string{SweepJob}
	if u.Reseal {
		kinds = append(kinds, ResealJob)
	}
	tick := time.NewTicker(interval)
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
