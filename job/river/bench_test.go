package river_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/job"
)

// BenchmarkJobs puts jobs that do nothing and has them done, by two workers.
func BenchmarkJobs(b *testing.B) {
	jobs := func(b *testing.B, open func(h job.Handlers) (job.Queue, func(), error)) {
		var done sync.WaitGroup
		q, end, err := open(job.Handlers{"work": func(context.Context, job.Job) error {
			done.Done()
			return nil
		}})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for b.Loop() {
			done.Add(1)
			n++
			if _, err := q.Put(b.Context(), job.Job{Kind: "work", Key: fmt.Sprint(n)}); err != nil {
				b.Fatal(err)
			}
		}
		done.Wait()
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "jobs/s")
		if err := q.Stop(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
		end()
	}
	b.Run("memory", func(b *testing.B) {
		jobs(b, func(h job.Handlers) (job.Queue, func(), error) { return job.NewMemory(h, nil), func() {}, nil })
	})
	b.Run("sqlite", func(b *testing.B) {
		jobs(b, func(h job.Handlers) (job.Queue, func(), error) {
			return openQueue(b.Context(), filepath.Join(b.TempDir(), "jobs.db"), h, nil)
		})
	})
	b.Run("postgres", func(b *testing.B) {
		jobs(b, func(h job.Handlers) (job.Queue, func(), error) {
			return openQueue(b.Context(), pgtest.Database(b), h, nil)
		})
	})
}
