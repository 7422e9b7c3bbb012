// Package river is a job.Queue in a database, by River. Jobs survive a crash, and any number
// of processes can share them: on SQLite those of one machine, on PostgreSQL those of many.
//
//	q, err := river.OnSQLite(ctx, db, handlers, nil)
//	defer q.Stop(ctx)
//
// A process signs for its running jobs twice a second. Wait gives up on a job without a
// signature for two seconds (job.Options.Lease). After half a minute, and at most a minute
// and a half after its process has died, another one takes the job over; that counts as an
// attempt. If the clocks of machines differ by more than some seconds, jobs may run twice,
// which is harmless.
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

	running atomic.Int64 // jobs at work here
	once    sync.Once
	stopped atomic.Bool // Stop was called
	hurry   atomic.Bool // running jobs are being interrupted
	err     error       // of Stop
}

var _ job.Queue = (*Queue)(nil)

// client has the methods of river.Client that are used, for any database.
type client interface {
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
	Insert(ctx context.Context, args river.JobArgs, o *river.InsertOpts) (*rivertype.JobInsertResult, error)
	JobList(ctx context.Context, p *river.JobListParams) (*river.JobListResult, error)
}

// OnSQLite starts a queue in a SQLite database, and creates its tables. db should have one
// connection. Others may use it too, such as a store: they wait for River while it writes,
// and River for them. It must not be closed before Stop has returned.
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

// OnPostgres starts a queue in a PostgreSQL database, and creates its tables. The pool must
// not be closed before Stop has returned.
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

// rescue is after how many leases another process takes a job over.
const rescue = 15

func begin[T any](ctx context.Context, driver riverdriver.Driver[T], h job.Handlers, o *job.Options, poll time.Duration) (*Queue, error) {
	q := &Queue{handlers: h, options: o.Defaults(), database: driver.GetExecutor()}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{queue: q})
	c, err := river.NewClient(driver, &river.Config{
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: q.options.Workers}},
		Workers:              workers,
		JobTimeout:           -1, // Handlers.Do has the timeout
		RescueStuckJobsAfter: rescue * q.options.Lease,
		FetchCooldown:        fetchPause,
		FetchPollInterval:    poll,
		Logger:               slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("river: %w", err)
	}
	q.client = c
	// The end of this context would stop the queue; only Stop may do that.
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, fmt.Errorf("river: starting to work: %w", err)
	}
	return q, nil
}

// fetchPause is the shortest time between two queries for jobs, and fetchPoll the longest
// without a notification.
const (
	fetchPause = 20 * time.Millisecond
	fetchPoll  = time.Second
)

// args is a job as River stores it.
type args struct {
	Name string          `json:"kind"`
	Key  string          `json:"key" river:"unique"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Kind implements river.JobArgs. To River all jobs are of one kind, so that only the key is
// unique.
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

// find returns the waiting or running job with the key, or nil.
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

// look is the pause between two queries for the end of a job, which another process may run.
const look = 50 * time.Millisecond

// Wait implements job.Queue. A process is alive if its signature changes, so clocks of two
// machines are not compared. Between two queries at most twice the pause counts as silence:
// if this process was held up, it does not know about the other.
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

// lastGrace is how long interrupted jobs may take to end.
const lastGrace = 10 * time.Second

// Stop implements job.Queue. Waiting and interrupted jobs stay in the database.
func (q *Queue) Stop(ctx context.Context) error {
	q.once.Do(func() {
		q.stopped.Store(true)
		if q.err = q.stopClient(ctx); q.err == nil {
			return
		}
		q.hurry.Store(true)
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastGrace)
		defer cancel()
		q.err = errors.Join(q.err, q.client.StopAndCancel(hard))
	})
	return q.err
}

// stopClient stops River. It does not wait for it once no job has been running for a while: if
// River stops just when it becomes the leader of all processes, its elector and the reader of
// the elector's news wait for each other for ever (v0.31, Elector.notifySubscribers). What is
// left behind then holds no job.
func (q *Queue) stopClient(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- q.client.Stop(ctx) }()
	tick := time.NewTicker(lastGrace / 2)
	defer tick.Stop()
	for idle := 0; idle < 2; {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			if idle++; q.running.Load() > 0 {
				idle = 0
			}
		}
	}
	return nil
}

// worker runs the jobs that River hands out.
type worker struct {
	river.WorkerDefaults[args]
	queue *Queue
}

func (w *worker) Work(ctx context.Context, r *river.Job[args]) error {
	q := w.queue
	q.running.Add(1)
	defer q.running.Add(-1)
	ctx, cancel := context.WithCancel(ctx)
	defer q.hold(ctx, r.JobRow, cancel)()
	j := r.Args.job()
	j.Attempt, j.Attempts = r.Attempt, r.MaxAttempts
	err := q.handlers.Do(ctx, j, q.options.Timeout)
	switch {
	case err == nil:
		return nil
	case q.hurry.Load():
		return river.JobSnooze(0) // interrupted; not counted as an attempt
	case r.Attempt >= r.MaxAttempts:
		q.options.Failed(r.Args.job(), err)
	}
	return err
}

// hold signs for a running job until end is called. It interrupts the job if another process
// has taken it over.
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
			// After an error the next signature will do.
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

func (w *worker) NextRetry(r *river.Job[args]) time.Time {
	return time.Now().Add(w.queue.options.Pause(r.Attempt))
}
