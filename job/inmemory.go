package job

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Memory does jobs in this process and forgets them with it. It is for stores
// in memory and for one process alone.
type Memory struct {
	handlers Handlers
	options  Options

	ctx  context.Context // ends when running jobs are to be interrupted
	stop context.CancelFunc
	jobs sync.WaitGroup
	slot chan struct{} // held by each job that runs

	mu      sync.Mutex
	closed  chan struct{}       // closed when no more jobs are taken
	waiting map[string]*pending // by key
}

// pending is a job that waits or runs.
type pending struct {
	over    chan struct{} // closed when the job is over
	resting chan struct{} // closed while its next attempt is not soon
}

var _ Queue = (*Memory)(nil)

// NewMemory returns a queue that works until it is stopped.
func NewMemory(h Handlers, o *Options) *Memory {
	options := o.Defaults()
	ctx, stop := context.WithCancel(context.Background())
	return &Memory{
		handlers: h, options: options, ctx: ctx, stop: stop,
		slot: make(chan struct{}, options.Workers), closed: make(chan struct{}), waiting: map[string]*pending{},
	}
}

// Put implements Queue.
func (q *Memory) Put(ctx context.Context, j Job) (bool, error) {
	if err := q.handlers.Check(j); err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.closed:
		return false, fmt.Errorf("job.Put(%s): %w", j.Key, ErrStopped)
	default:
	}
	if q.waiting[j.Key] != nil {
		return false, nil
	}
	p := &pending{over: make(chan struct{}), resting: make(chan struct{})}
	q.waiting[j.Key] = p
	q.jobs.Add(1)
	go q.work(j, p)
	return true, nil
}

func (q *Memory) work(j Job, p *pending) {
	defer q.jobs.Done()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		close(p.over)
		delete(q.waiting, j.Key)
	}()
	for attempt := 1; ; attempt++ {
		select {
		case q.slot <- struct{}{}:
		case <-q.closed:
			return // it has not begun
		}
		j.Attempt, j.Attempts = attempt, q.options.Attempts
		err := q.handlers.Do(q.ctx, j, q.options.Timeout)
		<-q.slot
		switch {
		case err == nil:
			return
		case attempt == q.options.Attempts:
			q.options.Failed(j, err)
			return
		}
		if !q.pause(p, q.options.Pause(attempt)) {
			q.options.Failed(j, err)
			return
		}
	}
}

// pause lets a job rest between two attempts, and reports whether the queue is still
// open after it.
func (q *Memory) pause(p *pending, d time.Duration) bool {
	sleep := func(d time.Duration) bool {
		select {
		case <-time.After(d):
			return true
		case <-q.closed:
			return false
		}
	}
	if d > Soon {
		close(p.resting)
		open := sleep(d - Soon)
		q.mu.Lock()
		p.resting = make(chan struct{})
		q.mu.Unlock()
		if d = Soon; !open {
			return false
		}
	}
	return sleep(d)
}

// Busy implements Queue.
func (q *Memory) Busy(_ context.Context, key string) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting[key] != nil, nil
}

// Wait implements Queue.
func (q *Memory) Wait(ctx context.Context, key string) error {
	q.mu.Lock()
	p := q.waiting[key]
	if p == nil {
		q.mu.Unlock()
		return nil
	}
	over, resting := p.over, p.resting
	q.mu.Unlock()
	select {
	case <-over:
		return nil
	case <-resting:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop implements Queue. Jobs that have not begun are forgotten.
func (q *Memory) Stop(ctx context.Context) error {
	q.mu.Lock()
	select {
	case <-q.closed:
	default:
		close(q.closed)
	}
	q.mu.Unlock()
	done := make(chan struct{})
	go func() {
		q.jobs.Wait()
		close(done)
	}()
	defer q.stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		q.stop()
		<-done
		return ctx.Err()
	}
}
