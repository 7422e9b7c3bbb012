package care

import (
	"context"
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
