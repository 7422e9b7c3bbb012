package river_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/job"
)

// TestRestart: the server falls and comes back while jobs are put and done. Who
// tries again what gave an error loses none.
func TestRestart(t *testing.T) {
	const jobs = 200
	database := pgtest.Database(t)
	server := pgtest.Current()
	var mu sync.Mutex
	done := map[string]int{}
	quarter := make(chan struct{})
	q, end, err := openQueue(t.Context(), database, job.Handlers{"work": func(_ context.Context, j job.Job) error {
		mu.Lock()
		defer mu.Unlock()
		if done[j.Key]++; len(done) == jobs/4 && done[j.Key] == 1 {
			close(quarter)
		}
		return nil
	}}, &job.Options{Attempts: 10, Backoff: time.Millisecond, Lease: short})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	back := make(chan struct{})
	go func() {
		defer close(back)
		<-quarter
		if err := server.Halt(); err != nil {
			t.Error(err)
		}
		if err := server.Resume(); err != nil {
			t.Error(err)
		}
	}()
	refused := 0
	again := func(f func() error) {
		if f() == nil {
			return
		}
		refused++
		<-back
		// Each connection of the pool may have to find out by itself.
		var err error
		for range 20 {
			if err = f(); err == nil {
				return
			}
		}
		t.Fatal(err)
	}
	for n := range jobs {
		if n == jobs/4 {
			<-quarter
		}
		again(func() error {
			_, err := q.Put(t.Context(), job.Job{Kind: "work", Key: fmt.Sprint(n)})
			return err
		})
	}
	<-back
	for n := range jobs {
		again(func() error { return q.Wait(t.Context(), fmt.Sprint(n)) })
	}
	if err := q.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for n := range jobs {
		if done[fmt.Sprint(n)] == 0 {
			t.Errorf("job %d was lost", n)
		}
	}
	t.Logf("%d calls met the restart", refused)
}
