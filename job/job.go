// Package job is a queue for background work: compacting a thread early, deleting what has
// expired. Memory runs jobs in this process; package river runs them from a database, in
// any number of processes.
//
// A job may be interrupted and run again, so handlers must be idempotent. Compactions are:
// a plan is committed for a version, and only once.
//
//	q := job.NewMemory(job.Handlers{"compact": work}, nil)
//	defer q.Stop(ctx)
//	added, err := q.Put(ctx, job.Job{Kind: "compact", Key: job.CompactKey("chat", id), Args: args})
package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Job is one piece of work.
type Job struct {
	// Kind selects the handler.
	Kind string
	// Key identifies the work: while a job with the key waits or runs, no other is added.
	Key string
	// Args are the arguments of the handler.
	Args json.RawMessage

	// Attempt is the number of the attempt, from 1, and Attempts how many there may be. The
	// queue sets both for the handler.
	Attempt, Attempts int
}

// CompactKey returns the key of a thread's compaction, "compact:{domain}:{id}".
func CompactKey(domain, id string) string { return "compact:" + domain + ":" + id }

// Handler runs a job. After an error it is tried again, up to Options.Attempts.
type Handler func(ctx context.Context, j Job) error

// Handlers are the handlers by kind of job.
type Handlers map[string]Handler

// ErrStopped is wrapped by errors of Put after Stop.
var ErrStopped = errors.New("the queue has been stopped")

// ErrAbandoned is wrapped by the error of Wait for a job whose process seems to be dead.
// Whoever needs the work should do it.
var ErrAbandoned = errors.New("the process that runs the job seems to be dead")

// Check returns an error for an invalid job. It is for implementations.
func (h Handlers) Check(j Job) error {
	switch {
	case j.Key == "":
		return errors.New("job: a job needs a key")
	case h[j.Kind] == nil:
		return fmt.Errorf("job: kind %q, key %q: no handler for this kind of job", j.Kind, j.Key)
	case len(j.Args) > 0 && !rawjson.Valid(j.Args):
		return fmt.Errorf("job: kind %q, key %q: the arguments are not JSON", j.Kind, j.Key)
	}
	return nil
}

// Queue runs jobs. Implementations are safe for concurrent use.
type Queue interface {
	// Put adds a job. It returns false if one with the same key waits or runs.
	Put(ctx context.Context, j Job) (added bool, err error)
	// Busy reports whether a job with the key waits or runs.
	Busy(ctx context.Context, key string) (bool, error)
	// Wait returns when no job with the key waits or runs, whether it succeeded or not.
	// It does not wait for a failed job whose next attempt is later than Soon. The error
	// is that of the context, or wraps ErrAbandoned if the process that runs the job has
	// given no sign of life for Options.Lease.
	Wait(ctx context.Context, key string) error
	// Stop stops the queue and returns when running jobs are done. If ctx ends before, they
	// are interrupted; a durable queue runs them again later. It may be called again.
	Stop(ctx context.Context) error
}

// Soon is how near the next attempt of a failed job must be for Wait to wait for it. In a
// longer time, whoever needs the work has done it.
const Soon = 2 * time.Second

// Options configure a queue; nil or the zero value holds the defaults.
type Options struct {
	// Workers is how many jobs run at a time. 0 is 2.
	Workers int
	// Timeout is how long one attempt may take. 0 is 5 minutes.
	Timeout time.Duration
	// Attempts is how often a job is tried. 0 is 2.
	Attempts int
	// Backoff is the pause before the second attempt; it doubles with each
	// further one. 0 is 3 seconds.
	Backoff time.Duration
	// Lease is how long Wait waits for a process that gives no sign of life; a live one
	// gives four in that time. After 15 times the lease another process takes the job over.
	// 0 is 2 seconds. Memory ignores it.
	Lease time.Duration
	// Failed is called when the last attempt of a job has failed. It may be nil.
	Failed func(j Job, err error)
}

// Defaults returns the options with all defaults filled in. It is for implementations.
func (o *Options) Defaults() Options {
	d := *cmp.Or(o, &Options{})
	d.Workers = cmp.Or(max(d.Workers, 0), 2)
	d.Timeout = cmp.Or(max(d.Timeout, 0), 5*time.Minute)
	d.Attempts = cmp.Or(max(d.Attempts, 0), 2)
	d.Backoff = cmp.Or(max(d.Backoff, 0), 3*time.Second)
	d.Lease = cmp.Or(max(d.Lease, 0), 2*time.Second)
	if d.Failed == nil {
		d.Failed = func(Job, error) {}
	}
	return d
}

// maxBackoff bounds the pause between two attempts.
const maxBackoff = time.Hour

// Pause returns how long to wait after an attempt, counted from 1, has failed.
func (o Options) Pause(attempt int) time.Duration {
	pause := o.Backoff
	for range attempt - 1 {
		if pause *= 2; pause > maxBackoff {
			return maxBackoff
		}
	}
	return pause
}

// Do runs one attempt of a job, with a timeout; a panic becomes an error. It is for
// implementations.
func (h Handlers) Do(ctx context.Context, j Job, timeout time.Duration) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("job: kind %q, key %q: panic: %v", j.Kind, j.Key, r)
		}
	}()
	handle := h[j.Kind]
	if handle == nil {
		return h.Check(j)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := handle(ctx, j); err != nil {
		return fmt.Errorf("job: kind %q, key %q: %w", j.Kind, j.Key, err)
	}
	return nil
}
