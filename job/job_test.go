package job_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/jobtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/leak"
	"github.com/palimpsest-ai/palimpsest/job"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestMemory(t *testing.T) {
	jobtest.TestQueue(t, func(_ testing.TB, h job.Handlers, o *job.Options) job.Queue { return job.NewMemory(h, o) })
}

// TestDefaults: two workers, five minutes, two attempts, 3 seconds and double
// that after each failure. D11
func TestDefaults(t *testing.T) {
	var none *job.Options
	o := none.Defaults()
	if o.Workers != 2 || o.Timeout != 5*time.Minute || o.Attempts != 2 || o.Backoff != 3*time.Second {
		t.Errorf("%+v", o)
	}
	for attempt, want := range map[int]time.Duration{1: 3 * time.Second, 2: 6 * time.Second, 3: 12 * time.Second, 100: time.Hour} {
		if got := o.Pause(attempt); got != want {
			t.Errorf("after attempt %d: %v, want %v", attempt, got, want)
		}
	}
}

// TestBackoff: the second attempt begins after the pause and not before, the
// limit of an attempt ends it. D11
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		failed := make(chan error, 1)
		q := job.NewMemory(job.Handlers{"work": func(ctx context.Context, _ job.Job) error {
			at = append(at, time.Since(start))
			<-ctx.Done()
			return ctx.Err()
		}}, &job.Options{Failed: func(_ job.Job, err error) { failed <- err }})
		if _, err := q.Put(t.Context(), job.Job{Kind: "work", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		failure := <-failed
		if len(at) != 2 || at[0] != 0 || at[1] != 5*time.Minute+3*time.Second {
			t.Errorf("attempts at %v", at)
		}
		if !errors.Is(failure, context.DeadlineExceeded) {
			t.Errorf("it failed with %v", failure)
		}
		if err := q.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSoon: a job that has failed is waited for in the last two seconds before its
// second attempt, and not before.
func TestSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		q := job.NewMemory(job.Handlers{"work": func(context.Context, job.Job) error {
			if tries++; tries == 1 {
				return errors.New("no luck")
			}
			return nil
		}}, &job.Options{Backoff: time.Minute})
		waited := func() time.Duration {
			start := time.Now()
			if err := q.Wait(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		if _, err := q.Put(t.Context(), job.Job{Kind: "work", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		if d := waited(); d != 0 || tries != 1 {
			t.Errorf("waited %v when the first attempt had failed, after %d", d, tries)
		}
		time.Sleep(57 * time.Second)
		if d := waited(); d != 0 {
			t.Errorf("waited %v where the second attempt was not near", d)
		}
		time.Sleep(2 * time.Second)
		if d := waited(); d != time.Second || tries != 2 {
			t.Errorf("waited %v for the second attempt, after %d", d, tries)
		}
		if err := q.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
