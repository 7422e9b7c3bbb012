// Package jobtest tests implementations of job.Queue.
package jobtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/job"
)

// Open starts a queue. The test stops it.
type Open func(t testing.TB, h job.Handlers, o *job.Options) job.Queue

// soon is a backoff that tests can live with.
const soon = 5 * time.Millisecond

// TestQueue runs the suite.
func TestQueue(t *testing.T, open Open) {
	for name, proves := range map[string]func(maker){
		"each job is done once, with its arguments": once,
		"one job for a key":                         unique,
		"workers":                                   workers,
		"attempts":                                  attempts,
		"a job that rests is not waited for":        resting,
		"what fails is told":                        failing,
		"bad jobs":                                  bad,
		"stop waits for what runs":                  stop,
		"stop interrupts in the end":                interrupt,
	} {
		t.Run(name, func(t *testing.T) { proves(maker{t, open}) })
	}
}

type maker struct {
	testing.TB
	open Open
}

// queue is a queue under test, for jobs of the kind "work".
type queue struct {
	testing.TB
	job.Queue
}

// begins starts a queue, which is stopped when the test ends.
func (m maker) begins(o *job.Options, work job.Handler) queue {
	m.Helper()
	q := queue{m.TB, m.open(m.TB, job.Handlers{"work": work}, o)}
	m.Cleanup(q.stop)
	return q
}

func (q queue) stop() {
	q.Helper()
	if err := q.Stop(context.WithoutCancel(q.Context())); err != nil && !errors.Is(err, context.Canceled) {
		q.Errorf("stop: %v", err)
	}
}

func (q queue) put(key, args string) bool {
	q.Helper()
	added, err := q.Put(q.Context(), job.Job{Kind: "work", Key: key, Args: json.RawMessage(args)})
	if err != nil {
		q.Fatal(err)
	}
	return added
}

func (q queue) wait(key string) {
	q.Helper()
	if err := q.Wait(q.Context(), key); err != nil {
		q.Fatal(err)
	}
}

func (q queue) busy(key string, want bool) {
	q.Helper()
	if got, err := q.Busy(q.Context(), key); err != nil || got != want {
		q.Errorf("busy(%s) = %v, %v", key, got, err)
	}
}

func once(m maker) {
	var mu sync.Mutex
	done := map[string]int{}
	q := m.begins(nil, func(_ context.Context, j job.Job) error {
		mu.Lock()
		defer mu.Unlock()
		done[j.Key+" "+string(j.Args)]++
		return nil
	})
	const jobs = 20
	for n := range jobs {
		if !q.put(fmt.Sprint("k", n), fmt.Sprint(n)) {
			m.Errorf("job %d was not added", n)
		}
	}
	for n := range jobs {
		q.wait(fmt.Sprint("k", n))
	}
	mu.Lock()
	defer mu.Unlock()
	for n := range jobs {
		if got := done[fmt.Sprintf("k%d %d", n, n)]; got != 1 {
			m.Errorf("job %d was done %d times", n, got)
		}
	}
}

// unique: D11, a job is not added while one of its key waits or runs, and a
// finished one does not block the next.
func unique(m maker) {
	begun, finish := make(chan string), make(chan struct{})
	q := m.begins(&job.Options{Workers: 1}, func(_ context.Context, j job.Job) error {
		begun <- string(j.Args)
		<-finish
		return nil
	})
	next := func(want string) {
		m.Helper()
		if got := <-begun; got != want {
			m.Errorf("next came the job with %s, want %s", got, want)
		}
	}
	key := job.CompactKey("chat", "t1")
	if key != "compact:chat:t1" {
		m.Errorf("key %q", key)
	}
	q.busy(key, false)
	if !q.put(key, `1`) {
		m.Fatal("the first job was not added")
	}
	next(`1`)
	q.busy(key, true)
	if q.put(key, `2`) {
		m.Error("a second job was added while the first runs")
	}
	if !q.put("other", `3`) || q.put("other", `4`) {
		m.Error("a job that waits is not told from one that does not")
	}
	q.busy("other", true)
	ctx, cancel := context.WithCancel(m.Context())
	cancel()
	if err := q.Wait(ctx, key); !errors.Is(err, context.Canceled) {
		m.Errorf("waiting for a job that runs ended with %v", err)
	}
	finish <- struct{}{}
	q.wait(key)
	next(`3`)
	finish <- struct{}{}
	q.wait("other")
	if !q.put(key, `5`) {
		m.Error("the finished job blocks the next")
	}
	next(`5`)
	finish <- struct{}{}
	q.wait(key)
	q.busy(key, false)
}

// workers: D11, no more jobs run at a time than there are workers, and so many do.
func workers(m maker) {
	begun, finish := make(chan struct{}), make(chan struct{})
	var running atomic.Int32
	q := m.begins(nil, func(context.Context, job.Job) error {
		if n := running.Add(1); n > 2 {
			m.Errorf("%d jobs at a time, want 2", n)
		}
		defer running.Add(-1)
		begun <- struct{}{}
		<-finish
		return nil
	})
	const jobs = 6
	for n := range jobs {
		q.put(fmt.Sprint(n), ``)
	}
	<-begun
	<-begun         // two at a time, by default
	for range 300 { // a third would have begun by then
		if _, err := q.Busy(m.Context(), "0"); err != nil {
			m.Fatal(err)
		}
		runtime.Gosched()
	}
	for range jobs - 2 {
		finish <- struct{}{}
		<-begun
	}
	finish <- struct{}{}
	finish <- struct{}{}
	for n := range jobs {
		q.wait(fmt.Sprint(n))
	}
}

// attempts: D11, a job is tried twice by default; what fails in the end is told
// and stands in nobody's way.
func attempts(m maker) {
	failed := make(chan error, 1)
	var tries atomic.Int32
	q := m.begins(&job.Options{Backoff: soon, Failed: func(_ job.Job, err error) { failed <- err }}, func(_ context.Context, j job.Job) error {
		n := tries.Add(1)
		if j.Attempt != int(n) || j.Attempts != 2 {
			m.Errorf("try %d is told to be %d of %d", n, j.Attempt, j.Attempts)
		}
		if string(j.Args) == `"later"` && n == 2 {
			return nil
		}
		return errors.New("no luck")
	})
	q.put("k", `"never"`)
	if err := <-failed; err == nil || tries.Load() != 2 {
		m.Errorf("after %d tries it failed with %v", tries.Load(), err)
	}
	q.wait("k")
	tries.Store(0)
	if !q.put("k", `"later"`) {
		m.Fatal("the failed job blocks the next")
	}
	q.wait("k")
	if tries.Load() != 2 {
		m.Errorf("it took %d tries", tries.Load())
	}
	if len(failed) > 0 {
		m.Errorf("a job that worked in the end failed with %v", <-failed)
	}
}

// resting: a job that has failed and is tried again much later keeps its key, and
// nobody waiting.
func resting(m maker) {
	q := m.begins(&job.Options{Backoff: time.Hour}, func(context.Context, job.Job) error { return errors.New("no luck") })
	q.put("k", ``)
	q.wait("k")
	q.busy("k", true)
	if q.put("k", ``) {
		m.Error("the job that waits for its second attempt is forgotten")
	}
	q.wait("k") // and who comes later does not either
}

// failing: a panic is an error, and so is a job that takes too long.
func failing(m maker) {
	failed := make(chan error, 1)
	o := &job.Options{Attempts: 1, Timeout: soon, Failed: func(_ job.Job, err error) { failed <- err }}
	q := m.begins(o, func(ctx context.Context, j job.Job) error {
		if string(j.Args) == `"panic"` {
			panic("oh")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	q.put("k", `"panic"`)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "panic: oh") {
		m.Errorf("a panic failed with %v", err)
	}
	q.wait("k")
	q.put("k", `"slow"`)
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
		m.Errorf("what takes too long failed with %v", err)
	}
	q.wait("k")
}

func bad(m maker) {
	q := m.begins(nil, func(context.Context, job.Job) error { return nil })
	for name, j := range map[string]job.Job{
		"no key":       {Kind: "work"},
		"unknown kind": {Kind: "play", Key: "k"},
		"no JSON":      {Kind: "work", Key: "k", Args: json.RawMessage(`{`)},
	} {
		added, err := q.Put(m.Context(), j)
		if err == nil || added || strings.Contains(err.Error(), "no handler") != (name == "unknown kind") {
			m.Errorf("%s: %v, %v", name, added, err)
		}
	}
}

func stop(m maker) {
	begun, finish := make(chan struct{}), make(chan struct{})
	var done atomic.Bool
	q := m.begins(nil, func(ctx context.Context, _ job.Job) error {
		close(begun)
		<-finish
		done.Store(ctx.Err() == nil)
		return nil
	})
	q.put("k", ``)
	<-begun
	go func() { finish <- struct{}{} }()
	q.stop() // and once more when the test ends
	if !done.Load() {
		m.Error("the job that ran was not done")
	}
	if _, err := q.Put(m.Context(), job.Job{Kind: "work", Key: "k2"}); !errors.Is(err, job.ErrStopped) {
		m.Errorf("put after stop: %v", err)
	}
}

func interrupt(m maker) {
	begun, ended := make(chan struct{}), make(chan struct{})
	q := m.begins(nil, func(ctx context.Context, _ job.Job) error {
		close(begun)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})
	q.put("k", ``)
	<-begun
	ctx, cancel := context.WithCancel(m.Context())
	cancel()
	if err := q.Stop(ctx); !errors.Is(err, context.Canceled) {
		m.Errorf("stop: %v", err)
	}
	<-ended
}
