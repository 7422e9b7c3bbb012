package job

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Memory is a Queue in memory: jobs are lost when the process ends. Make one with
// NewMemory.
type Memory struct {
	handlers Handlers
	options  Options

	ctx   context.Context // of running jobs; ends to interrupt them
	stop  context.CancelFunc
	open  context.Context // ends when Stop is called
	close context.CancelFunc
	jobs  sync.WaitGroup
	slot  chan struct{} // has an element for each running job

	mu      sync.Mutex
	waiting map[string]*pending // by key
}

// pending is a job that waits or runs.
type pending struct {
	over    chan struct{} // closed when the job has ended
	resting chan struct{} // closed while its next attempt is later than Soon
}

var _ Queue = (*Memory)(nil)

// NewMemory returns a queue that runs until it is stopped.
func NewMemory(h Handlers, o *Options) *Memory {
	options := o.Defaults()
	q := &Memory{handlers: h, options: options, slot: make(chan struct{}, options.Workers), waiting: map[string]*pending{}}
	q.ctx, q.stop = context.WithCancel(context.Background())
	q.open, q.close = context.WithCancel(context.Background())
	return q
}

// Put implements Queue.
func (q *Memory) Put(ctx context.Context, j Job) (bool, error) {
	if err := q.handlers.Check(j); err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open.Err() != nil {
		return false, fmt.Errorf("job.Put(%s): %w", j.Key, ErrStopped)
	}
	if q.waiting[j.Key] != nil {
		return false, nil
	}
	p := &pending{over: make(chan struct{}), resting: make(chan struct{})}
	q.waiting[j.Key] = p
	q.jobs.Go(func() { q.work(j, p) })
	return true, nil
}

func (q *Memory) work(j Job, p *pending) {
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		close(p.over)
		delete(q.waiting, j.Key)
	}()
	for attempt := 1; ; attempt++ {
		select {
		case q.slot <- struct{}{}:
		case <-q.open.Done():
			return // it was not started
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

// pause waits between two attempts. It returns false if the queue was stopped.
func (q *Memory) pause(p *pending, d time.Duration) bool {
	sleep := func(d time.Duration) bool {
		select {
		case <-time.After(d):
			return true
		case <-q.open.Done():
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

// Stop implements Queue. Jobs that were not started are dropped.
func (q *Memory) Stop(ctx context.Context) error {
	q.mu.Lock()
	q.close()
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
