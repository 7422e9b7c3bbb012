// Package jobtest holds what every job.Queue must do.
package jobtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/job"
)

// Open makes a queue that begins to work at once. The test stops it.
type Open func(t testing.TB, h job.Handlers, o *job.Options) job.Queue

// soon is a backoff that tests can live with.
const soon = 5 * time.Millisecond

// TestQueue runs the conformance tests.
func TestQueue(t *testing.T, open Open) {
	t.Run("each job is done once, with its arguments", func(t *testing.T) { once(t, open) })
	t.Run("one job for a key", func(t *testing.T) { unique(t, open) })
	t.Run("workers", func(t *testing.T) { workers(t, open) })
	t.Run("attempts", func(t *testing.T) { attempts(t, open) })
	t.Run("a job that rests is not waited for", func(t *testing.T) { resting(t, open) })
	t.Run("panic", func(t *testing.T) { panics(t, open) })
	t.Run("time limit", func(t *testing.T) { timeout(t, open) })
	t.Run("bad jobs", func(t *testing.T) { bad(t, open) })
	t.Run("stop waits for what runs", func(t *testing.T) { stop(t, open) })
	t.Run("stop interrupts in the end", func(t *testing.T) { interrupt(t, open) })
}

func put(t *testing.T, q job.Queue, key string, args string) bool {
	t.Helper()
	added, err := q.Put(t.Context(), job.Job{Kind: "work", Key: key, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func wait(t *testing.T, q job.Queue, key string) {
	t.Helper()
	if err := q.Wait(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

func stopped(t *testing.T, q job.Queue) {
	t.Helper()
	if err := q.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func once(t *testing.T, open Open) {
	var mu sync.Mutex
	done := map[string]int{}
	q := open(t, job.Handlers{"work": func(_ context.Context, j job.Job) error {
		mu.Lock()
		defer mu.Unlock()
		var n struct{ N int }
		if err := json.Unmarshal(j.Args, &n); err != nil {
			return err
		}
		done[fmt.Sprint(j.Key, " ", n.N)]++
		return nil
	}}, nil)
	defer stopped(t, q)
	const jobs = 20
	for n := range jobs {
		if !put(t, q, fmt.Sprint("k", n), fmt.Sprintf(`{"n": %d}`, n)) {
			t.Errorf("job %d was not added", n)
		}
	}
	for n := range jobs {
		wait(t, q, fmt.Sprint("k", n))
	}
	mu.Lock()
	defer mu.Unlock()
	for n := range jobs {
		if got := done[fmt.Sprintf("k%d %d", n, n)]; got != 1 {
			t.Errorf("job %d was done %d times", n, got)
		}
	}
}

// unique: D11, a job is not added while one of its key waits or runs, and a
// finished one does not block the next.
func unique(t *testing.T, open Open) {
	begun, finish := make(chan string), make(chan struct{})
	q := open(t, job.Handlers{"work": func(_ context.Context, j job.Job) error {
		begun <- string(j.Args)
		<-finish
		return nil
	}}, &job.Options{Workers: 1})
	defer stopped(t, q)
	key := job.CompactKey("chat", "t1")
	if key != "compact:chat:t1" {
		t.Errorf("key %q", key)
	}
	busy := func(key string, want bool) {
		t.Helper()
		if got, err := q.Busy(t.Context(), key); err != nil || got != want {
			t.Errorf("busy(%s) = %v, %v", key, got, err)
		}
	}
	busy(key, false)
	if !put(t, q, key, `1`) {
		t.Fatal("the first job was not added")
	}
	<-begun
	busy(key, true)
	if put(t, q, key, `2`) {
		t.Error("a second job was added while the first runs")
	}
	if !put(t, q, "other", `3`) || put(t, q, "other", `4`) {
		t.Error("a job that waits is not told from one that does not")
	}
	busy("other", true)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Wait(ctx, key); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a job that runs ended with %v", err)
	}
	finish <- struct{}{}
	wait(t, q, key)
	if got := <-begun; got != `3` {
		t.Errorf("next came the job with %s", got)
	}
	finish <- struct{}{}
	wait(t, q, "other")
	if !put(t, q, key, `5`) {
		t.Error("the finished job blocks the next")
	}
	if got := <-begun; got != `5` {
		t.Errorf("the job came with %s", got)
	}
	finish <- struct{}{}
	wait(t, q, key)
	busy(key, false)
}

// workers: D11, no more jobs run at a time than there are workers, and so many do.
func workers(t *testing.T, open Open) {
	begun, finish := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	running, most := 0, 0
	q := open(t, job.Handlers{"work": func(context.Context, job.Job) error {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			running--
		}()
		begun <- struct{}{}
		<-finish
		return nil
	}}, nil)
	defer stopped(t, q)
	const jobs = 6
	for n := range jobs {
		put(t, q, fmt.Sprint(n), ``)
	}
	<-begun
	<-begun         // two at a time, by default
	for range 300 { // a third would have begun by then
		if _, err := q.Busy(t.Context(), "0"); err != nil {
			t.Fatal(err)
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
		wait(t, q, fmt.Sprint(n))
	}
	mu.Lock()
	defer mu.Unlock()
	if most != 2 {
		t.Errorf("%d jobs at a time, want 2", most)
	}
}

// attempts: D11, a job is tried twice by default; what fails in the end is told
// and stands in nobody's way.
func attempts(t *testing.T, open Open) {
	failed := make(chan error, 1)
	var tries atomic.Int32
	q := open(t, job.Handlers{"work": func(_ context.Context, j job.Job) error {
		n := tries.Add(1)
		if j.Attempt != int(n) || j.Attempts != 2 {
			t.Errorf("try %d is told to be %d of %d", n, j.Attempt, j.Attempts)
		}
		if string(j.Args) == `"later"` && n == 2 {
			return nil
		}
		return errors.New("no luck")
	}}, &job.Options{Backoff: soon, Failed: func(_ job.Job, err error) { failed <- err }})
	defer stopped(t, q)
	put(t, q, "k", `"never"`)
	if err := <-failed; err == nil || tries.Load() != 2 {
		t.Errorf("after %d tries it failed with %v", tries.Load(), err)
	}
	wait(t, q, "k")
	tries.Store(0)
	if !put(t, q, "k", `"later"`) {
		t.Fatal("the failed job blocks the next")
	}
	wait(t, q, "k")
	if tries.Load() != 2 {
		t.Errorf("it took %d tries", tries.Load())
	}
	select {
	case err := <-failed:
		t.Errorf("a job that worked in the end failed with %v", err)
	default:
	}
}

// resting: a job that has failed and is tried again much later keeps its key, and
// nobody waiting.
func resting(t *testing.T, open Open) {
	q := open(t, job.Handlers{"work": func(context.Context, job.Job) error { return errors.New("no luck") }}, &job.Options{Backoff: time.Hour})
	defer stopped(t, q)
	put(t, q, "k", ``)
	wait(t, q, "k")
	if busy, err := q.Busy(t.Context(), "k"); err != nil || !busy || put(t, q, "k", ``) {
		t.Errorf("the job that waits for its second attempt is forgotten: %v, %v", busy, err)
	}
	wait(t, q, "k") // and who comes later does not either
}

func panics(t *testing.T, open Open) {
	failed := make(chan error, 1)
	q := open(t, job.Handlers{"work": func(context.Context, job.Job) error { panic("oh") }},
		&job.Options{Attempts: 1, Failed: func(_ job.Job, err error) { failed <- err }})
	defer stopped(t, q)
	put(t, q, "k", ``)
	if err := <-failed; err == nil {
		t.Error("a panic is no error")
	}
	wait(t, q, "k")
}

func timeout(t *testing.T, open Open) {
	failed := make(chan error, 1)
	q := open(t, job.Handlers{"work": func(ctx context.Context, _ job.Job) error {
		<-ctx.Done()
		return ctx.Err()
	}}, &job.Options{Attempts: 1, Timeout: soon, Failed: func(_ job.Job, err error) { failed <- err }})
	defer stopped(t, q)
	put(t, q, "k", ``)
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it failed with %v", err)
	}
	wait(t, q, "k")
}

func bad(t *testing.T, open Open) {
	q := open(t, job.Handlers{"work": func(context.Context, job.Job) error { return nil }}, nil)
	defer stopped(t, q)
	for name, j := range map[string]job.Job{
		"no key":       {Kind: "work"},
		"unknown kind": {Kind: "play", Key: "k"},
		"no JSON":      {Kind: "work", Key: "k", Args: json.RawMessage(`{`)},
	} {
		if added, err := q.Put(t.Context(), j); err == nil || added {
			t.Errorf("%s: %v, %v", name, added, err)
		}
	}
	if _, err := q.Put(t.Context(), job.Job{Kind: "play", Key: "k"}); !errors.Is(err, job.ErrUnknownKind) {
		t.Errorf("unknown kind: %v", err)
	}
}

func stop(t *testing.T, open Open) {
	begun, finish := make(chan struct{}), make(chan struct{})
	var done atomic.Bool
	q := open(t, job.Handlers{"work": func(ctx context.Context, _ job.Job) error {
		close(begun)
		<-finish
		done.Store(ctx.Err() == nil)
		return nil
	}}, nil)
	put(t, q, "k", ``)
	<-begun
	go func() { finish <- struct{}{} }()
	stopped(t, q)
	if !done.Load() {
		t.Error("the job that ran was not done")
	}
	stopped(t, q)
	if _, err := q.Put(t.Context(), job.Job{Kind: "work", Key: "k2"}); !errors.Is(err, job.ErrStopped) {
		t.Errorf("put after stop: %v", err)
	}
}

func interrupt(t *testing.T, open Open) {
	begun, ended := make(chan struct{}), make(chan struct{})
	q := open(t, job.Handlers{"work": func(ctx context.Context, _ job.Job) error {
		close(begun)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}}, nil)
	put(t, q, "k", ``)
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stop: %v", err)
	}
	<-ended
}
