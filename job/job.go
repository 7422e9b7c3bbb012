// Package job is work that is done in the background, once, by whoever is free:
// compacting a thread before it must be, sweeping what has expired. Queue is the
// contract; Memory does the work in this process, and the leaf package river does
// it from a database, by any number of processes.
//
// A job may be interrupted and done again, so a handler must not mind a second
// time. Compactions do not: a plan is committed for a version, and only once.
//
//	q := job.NewMemory(job.Handlers{"compact": work}, nil)
//	defer q.Stop(ctx)
//	added, err := q.Put(ctx, job.Job{Kind: "compact", Key: job.CompactKey("chat", id), Args: args})
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Job is one piece of work.
type Job struct {
	// Kind names the handler.
	Kind string
	// Key names the work: as long as a job with the key waits or runs, another
	// is not added. A finished one does not stand in the way of the next (D11).
	Key string
	// Args are the handler's.
	Args json.RawMessage

	// Attempt is which attempt this is, from 1, of Attempts in all. The queue says
	// so to the handler; who puts a job leaves both at 0.
	Attempt, Attempts int
}

// CompactKey is the key of a thread's compaction, "compact:{domain}:{id}" (D11).
func CompactKey(domain, id string) string { return "compact:" + domain + ":" + id }

// Handler does a job. An error means that it is to be tried again, as far as
// Options.Attempts allow.
type Handler func(ctx context.Context, j Job) error

// Handlers are found by the kind of job.
type Handlers map[string]Handler

// ErrStopped is wrapped by errors about a queue that takes no more jobs.
var ErrStopped = errors.New("the queue has been stopped")

// ErrAbandoned is wrapped by the error of waiting for a job whose process seems to be
// dead: who needs the work had better do it.
var ErrAbandoned = errors.New("nobody seems to do the job any more")

// ErrUnknownKind is wrapped by errors about a job that no handler is for.
var ErrUnknownKind = errors.New("no handler for this kind of job")

// Check says what is wrong with a job, for implementations.
func (h Handlers) Check(j Job) error {
	switch {
	case j.Key == "":
		return errors.New("job: a job needs a key")
	case h[j.Kind] == nil:
		return fmt.Errorf("job: kind %q, key %q: %w", j.Kind, j.Key, ErrUnknownKind)
	case len(j.Args) > 0 && !rawjson.Valid(j.Args):
		return fmt.Errorf("job: kind %q, key %q: the arguments are not JSON", j.Kind, j.Key)
	}
	return nil
}

// Queue takes jobs and does them. Implementations are safe for concurrent use.
type Queue interface {
	// Put adds a job. It is false when one with its key waits or runs already.
	Put(ctx context.Context, j Job) (added bool, err error)
	// Busy reports whether a job with the key waits or runs.
	Busy(ctx context.Context, key string) (bool, error)
	// Wait returns when no job with the key waits or runs, or with the error of
	// the context. Whether the job succeeded is not told. A job that has failed and
	// is not tried again within Soon is not waited for, though it is busy. The
	// error wraps ErrAbandoned where whoever does the job has not said so for
	// Options.Lease.
	Wait(ctx context.Context, key string) error
	// Stop takes no more jobs and returns when those that run are done. When ctx
	// ends before, they are interrupted, which leaves a durable queue to do them
	// again later. Stopping twice is once.
	Stop(ctx context.Context) error
}

// Soon is how near the next attempt of a job that has failed must be for others to
// wait for it: whoever needs the work has done it himself by then.
const Soon = 2 * time.Second

// Options say how jobs are done; nil or the zero value holds the defaults, which
// are those of seed D (D11).
type Options struct {
	// Workers is how many jobs run at a time. 0 is 2.
	Workers int
	// Timeout is how long one attempt may take. 0 is 5 minutes.
	Timeout time.Duration
	// Attempts is how often a job is tried in all. 0 is 2.
	Attempts int
	// Backoff is the pause before the second attempt; it doubles with each
	// further one. 0 is 3 seconds.
	Backoff time.Duration
	// Lease is how long others wait for a job whose process has not said that it is
	// at it, which it does four times as often. After 15 times that another process
	// takes the job up: one that is only slow must not have its work done twice. 0 is
	// 2 seconds. A queue in one process has no use for it.
	Lease time.Duration
	// Failed is told when the last attempt of a job has failed. Nil tells nobody.
	Failed func(j Job, err error)
}

// Defaults returns the options with nothing left at zero, for implementations.
func (o *Options) Defaults() Options {
	d := Options{}
	if o != nil {
		d = *o
	}
	if d.Workers <= 0 {
		d.Workers = 2
	}
	if d.Timeout <= 0 {
		d.Timeout = 5 * time.Minute
	}
	if d.Attempts <= 0 {
		d.Attempts = 2
	}
	if d.Backoff <= 0 {
		d.Backoff = 3 * time.Second
	}
	if d.Lease <= 0 {
		d.Lease = 2 * time.Second
	}
	if d.Failed == nil {
		d.Failed = func(Job, error) {}
	}
	return d
}

// maxBackoff bounds the pause between two attempts.
const maxBackoff = time.Hour

// Pause is how long to wait after an attempt, counted from 1, has failed: the
// backoff, doubled each time (D11).
func (o Options) Pause(attempt int) time.Duration {
	pause := o.Backoff
	for range attempt - 1 {
		if pause *= 2; pause > maxBackoff {
			return maxBackoff
		}
	}
	return pause
}

// Do runs one attempt of a job: bounded in time, and a panic is an error. It is
// for implementations.
func (h Handlers) Do(ctx context.Context, j Job, timeout time.Duration) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("job: kind %q, key %q: panic: %v", j.Kind, j.Key, r)
		}
	}()
	handle := h[j.Kind]
	if handle == nil {
		return fmt.Errorf("job: kind %q, key %q: %w", j.Kind, j.Key, ErrUnknownKind)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := handle(ctx, j); err != nil {
		return fmt.Errorf("job: kind %q, key %q: %w", j.Kind, j.Key, err)
	}
	return nil
}
