// Package river does jobs from a database with River, so that they survive a
// crash and any number of processes can share them: on SQLite for the processes
// of one machine, on PostgreSQL for many.
//
//	q, err := river.OnSQLite(ctx, db, handlers, nil)
//	defer q.Stop(ctx)
//
// A process says twice a second that it still does its jobs. A job of which nobody
// has said so for two seconds is not waited for any more (job.Options.Lease); after half
// a minute it is taken up again by another process, at the latest a minute and a half
// after its own died; that counts as an attempt. The clocks of all machines must agree within some seconds: otherwise jobs are done
// twice, which changes nothing.
package river

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/palimpsest-ai/palimpsest/job"
)

// Queue implements job.Queue. Make one with OnSQLite or OnPostgres.
type Queue struct {
	handlers job.Handlers
	options  job.Options
	client   client
	database riverdriver.Executor

	once    sync.Once
	stopped atomic.Bool // no more jobs are taken
	hurry   atomic.Bool // running jobs are being interrupted
	err     error       // of stopping
}

var _ job.Queue = (*Queue)(nil)

// client is what is used of a river.Client, whatever its database.
type client interface {
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
	Insert(ctx context.Context, args river.JobArgs, o *river.InsertOpts) (*rivertype.JobInsertResult, error)
	JobList(ctx context.Context, p *river.JobListParams) (*river.JobListResult, error)
}

// OnSQLite makes a queue of tables in a SQLite database and begins to work. The
// handle should be its own, with one connection: River holds it while it writes.
// It must not be closed before Stop has returned. The tables are made when they
// are missing.
func OnSQLite(ctx context.Context, db *sql.DB, h job.Handlers, o *job.Options) (*Queue, error) {
	return onSQLite(ctx, db, h, o, fetchPoll)
}

func onSQLite(ctx context.Context, db *sql.DB, h job.Handlers, o *job.Options, poll time.Duration) (*Queue, error) {
	driver := sqliteDriver{riversqlite.New(db)}
	if err := migrate(ctx, driver, sqliteTries); err != nil {
		return nil, err
	}
	return begin(ctx, driver, h, o, poll)
}

// OnPostgres makes a queue of tables in a PostgreSQL database and begins to
// work. The pool must not be closed before Stop has returned. The tables are made
// when they are missing.
func OnPostgres(ctx context.Context, pool *pgxpool.Pool, h job.Handlers, o *job.Options) (*Queue, error) {
	return onPostgres(ctx, pool, h, o, fetchPoll)
}

func onPostgres(ctx context.Context, pool *pgxpool.Pool, h job.Handlers, o *job.Options, poll time.Duration) (*Queue, error) {
	driver := riverpgxv5.New(pool)
	if err := migratePostgres(ctx, pool, driver); err != nil {
		return nil, err
	}
	return begin(ctx, driver, h, o, poll)
}

// rescue is after how many leases a job is taken up again by another process.
const rescue = 15

func begin[T any](ctx context.Context, driver riverdriver.Driver[T], h job.Handlers, o *job.Options, poll time.Duration) (*Queue, error) {
	q := &Queue{handlers: h, options: o.Defaults(), database: driver.GetExecutor()}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{queue: q})
	c, err := river.NewClient(driver, &river.Config{
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: q.options.Workers}},
		Workers:              workers,
		JobTimeout:           -1, // Do bounds the attempt
		RescueStuckJobsAfter: rescue * q.options.Lease,
		FetchCooldown:        fetchPause,
		FetchPollInterval:    poll,
		Logger:               slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("river: %w", err)
	}
	q.client = c
	// The context of Start ends the work; it is Stop's to do that.
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, fmt.Errorf("river: starting to work: %w", err)
	}
	return q, nil
}

// fetchPause is the shortest time between two looks for jobs, and fetchPoll the longest
// where nobody says that there are some.
const (
	fetchPause = 20 * time.Millisecond
	fetchPoll  = time.Second
)

// args is a job as River keeps it.
type args struct {
	Name string          `json:"kind"`
	Key  string          `json:"key" river:"unique"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Kind implements river.JobArgs. All jobs are of one kind to River: what is
// unique is the key alone.
func (args) Kind() string { return "palimpsest" }

func (a args) job() job.Job { return job.Job{Kind: a.Name, Key: a.Key, Args: a.Args} }

// unfinished are the states of jobs that wait or run.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
	rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

// Put implements job.Queue.
func (q *Queue) Put(ctx context.Context, j job.Job) (bool, error) {
	if err := q.handlers.Check(j); err != nil {
		return false, err
	}
	if q.stopped.Load() {
		return false, fmt.Errorf("river.Put(%s): %w", j.Key, job.ErrStopped)
	}
	res, err := q.client.Insert(ctx, args{j.Kind, j.Key, j.Args}, &river.InsertOpts{
		MaxAttempts: q.options.Attempts,
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByState: unfinished},
	})
	if err != nil {
		return false, fmt.Errorf("river.Put(%s): %w", j.Key, err)
	}
	return !res.UniqueSkippedAsDuplicate, nil
}

// Busy implements job.Queue.
func (q *Queue) Busy(ctx context.Context, key string) (bool, error) {
	r, err := q.find(ctx, key)
	return r != nil, err
}

// find returns the job with the key that waits or runs, or nil.
func (q *Queue) find(ctx context.Context, key string) (*rivertype.JobRow, error) {
	res, err := q.client.JobList(ctx, river.NewJobListParams().First(1).States(unfinished...).
		Where("args ->> 'key' = @key", river.NamedArgs{"key": key}))
	if err != nil {
		return nil, fmt.Errorf("river.Busy(%s): %w", key, err)
	}
	if len(res.Jobs) == 0 {
		return nil, nil
	}
	return res.Jobs[0], nil
}

// look is the pause between two looks for the end of a job, which another
// process may be doing.
const look = 50 * time.Millisecond

// Wait implements job.Queue. Whether the process that does the job is alive is seen
// from what it says changing, so that the clocks of two machines are not compared. Of
// the time between two looks no more counts than a look takes: who was held up himself
// has not seen that the other is silent.
func (q *Queue) Wait(ctx context.Context, key string) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var said, last time.Time
	var silent time.Duration
	for {
		r, err := q.find(ctx, key)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil || r == nil:
			return err
		case r.State == rivertype.JobStateRetryable && time.Until(r.ScheduledAt) > job.Soon:
			return nil
		case r.State != rivertype.JobStateRunning || r.AttemptedAt == nil || !r.AttemptedAt.Equal(said):
			silent = 0
			if r.AttemptedAt != nil {
				said = *r.AttemptedAt
			}
		default:
			if silent += min(time.Since(last), 2*look); silent > q.options.Lease {
				return fmt.Errorf("river.Wait(%s): %w", key, job.ErrAbandoned)
			}
		}
		last = time.Now()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lastGrace is how long interrupted jobs may take to notice it.
const lastGrace = 10 * time.Second

// Stop implements job.Queue. Jobs that wait stay in the database, and so do
// those that had to be interrupted.
func (q *Queue) Stop(ctx context.Context) error {
	q.once.Do(func() {
		q.stopped.Store(true)
		if q.err = q.client.Stop(ctx); q.err == nil {
			return
		}
		q.hurry.Store(true)
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastGrace)
		defer cancel()
		q.err = errors.Join(q.err, q.client.StopAndCancel(hard))
	})
	return q.err
}

// worker does the jobs that River hands out.
type worker struct {
	river.WorkerDefaults[args]
	queue *Queue
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, r *river.Job[args]) error {
	q := w.queue
	ctx, cancel := context.WithCancel(ctx)
	defer q.hold(ctx, r.JobRow, cancel)()
	j := r.Args.job()
	j.Attempt, j.Attempts = r.Attempt, r.MaxAttempts
	err := q.handlers.Do(ctx, j, q.options.Timeout)
	switch {
	case err == nil:
		return nil
	case q.hurry.Load():
		return river.JobSnooze(0) // interrupted: it does not count as an attempt
	case r.Attempt >= r.MaxAttempts:
		q.options.Failed(r.Args.job(), err)
	}
	return err
}

// hold says that the job is being done until the function that it returns is
// called. It interrupts the job when another process has taken it up.
func (q *Queue) hold(ctx context.Context, r *rivertype.JobRow, interrupt context.CancelFunc) (end func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(q.options.Lease / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			now := time.Now().UTC().Truncate(time.Millisecond)
			// One that fails is made up for by the next.
			row, err := q.database.JobUpdateFull(ctx, &riverdriver.JobUpdateFullParams{ID: r.ID, AttemptedAtDoUpdate: true, AttemptedAt: &now})
			if err == nil && row.Attempt != r.Attempt {
				interrupt()
				return
			}
		}
	}()
	return func() {
		interrupt()
		<-over
	}
}

// NextRetry implements river.Worker: D11's backoff.
func (w *worker) NextRetry(r *river.Job[args]) time.Time {
	return time.Now().Add(w.queue.options.Pause(r.Attempt))
}
