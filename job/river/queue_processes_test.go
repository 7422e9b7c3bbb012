package river_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/jobtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/job/river"
)

// childVariable makes the test binary a process that does jobs of a database, and
// ownVariable is a job that it is to put there.
const (
	childVariable = "PALIMPSEST_TEST_JOBS"
	ownVariable   = "PALIMPSEST_TEST_OWN_JOB"
)

func TestMain(m *testing.M) {
	if database := os.Getenv(childVariable); database != "" {
		if err := child(context.Background(), database); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if os.Getenv(zoneVariable) != "" {
		os.Exit(m.Run()) // on SQLite alone
	}
	os.Exit(pgtest.Main(m))
}

// A lease, and a time between two looks for jobs, that tests can wait for. Only tests of
// the lease have a short one: on a busy machine who does a job may be silent for longer.
const (
	short = 400 * time.Millisecond
	often = 20 * time.Millisecond
)

// openQueue opens a queue in a database, SQLite's by its file or PostgreSQL's by
// its address. It is ended when it has been stopped.
func openQueue(ctx context.Context, database string, h job.Handlers, o *job.Options) (q job.Queue, end func(), err error) {
	if isPostgres(database) {
		pool, err := pgxpool.New(ctx, database)
		if err != nil {
			return nil, nil, err
		}
		q, err := river.OnPostgresLooking(ctx, pool, h, o, often)
		return q, pool.Close, err
	}
	db, err := sql.Open("sqlite", sqliteName(database))
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	q, err = river.OnSQLiteLooking(ctx, db, h, o, often)
	return q, func() { db.Close() }, err
}

// child does jobs until it is killed, and puts one of its own where the test asks
// for it. It says which it has begun, and ends none that is to hang.
func child(ctx context.Context, database string) error {
	q, _, err := openQueue(ctx, database, job.Handlers{"work": func(_ context.Context, j job.Job) error {
		fmt.Println(j.Key)
		if j.Key == "hang" {
			select {}
		}
		return nil
	}}, nil)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if key := os.Getenv(ownVariable); key != "" {
		if _, err := q.Put(ctx, job.Job{Kind: "work", Key: key}); err != nil {
			return err
		}
	}
	select {}
}

// start starts a child; the channel carries what it says and is closed when it
// has ended.
func start(t *testing.T, database, own string) (*exec.Cmd, <-chan string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+database, ownVariable+"="+own)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1000)
	go func() {
		defer close(said)
		for r := bufio.NewScanner(out); r.Scan(); {
			said <- r.Text()
		}
	}()
	t.Cleanup(func() {
		// It may be dead already.
		_ = cmd.Process.Kill()
		for range said {
		}
		_ = cmd.Wait()
	})
	if line := <-said; line != "ready" {
		t.Fatalf("the process says %q", line)
	}
	return cmd, said
}

// engines runs a test on both databases.
func engines(t *testing.T, test func(t *testing.T, database string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "jobs.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, pgtest.Database(t))
	})
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	jobtest.TestQueue(t, func(t testing.TB, h job.Handlers, o *job.Options) job.Queue {
		pool, err := pgxpool.New(t.Context(), pgtest.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		q, err := river.OnPostgresLooking(t.Context(), pool, h, o, often)
		if err != nil {
			t.Fatal(err)
		}
		return q
	})
}

// TestProcesses: three queues that make their tables at the same time, and a
// process beside them, share the jobs: each is done once, whoever put it, and one
// that is there is not put again by another. D11
func TestProcesses(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		const queues, jobs = 3, 60
		var mu sync.Mutex
		done := map[string]int{}
		var all [queues]job.Queue
		var opening sync.WaitGroup
		for n := range all {
			opening.Go(func() {
				q, end, err := openQueue(t.Context(), database, job.Handlers{"work": func(_ context.Context, j job.Job) error {
					mu.Lock()
					defer mu.Unlock()
					done[j.Key]++
					return nil
				}}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() {
					if err := q.Stop(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
					end()
				})
				all[n] = q
			})
		}
		opening.Wait()
		if t.Failed() {
			return
		}
		_, said := start(t, database, "")
		for n := range jobs {
			added, err := all[n%queues].Put(t.Context(), job.Job{Kind: "work", Key: fmt.Sprint("job ", n)})
			if err != nil || !added {
				t.Fatal(added, err)
			}
		}
		for n := range jobs {
			if err := all[(n+1)%queues].Wait(t.Context(), fmt.Sprint("job ", n)); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for here := len(done); here < jobs; here++ { // the others were the process's
			done[<-said]++
		}
		for n := range jobs {
			if times := done[fmt.Sprint("job ", n)]; times != 1 {
				t.Errorf("job %d was done %d times", n, times)
			}
		}
	})
}

// TestTablesAtOnce: processes that begin at the same time on a database without
// tables all come to work.
func TestTablesAtOnce(t *testing.T) {
	t.Parallel()
	const queues = 6
	rounds := 1
	if corpus.Long() {
		rounds = 10
	}
	for range rounds {
		engines(t, func(t *testing.T, database string) {
			var opening sync.WaitGroup
			for range queues {
				opening.Go(func() {
					q, end, err := openQueue(t.Context(), database, job.Handlers{}, nil)
					if err != nil {
						t.Error(err)
						return
					}
					defer end()
					if err := q.Stop(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				})
			}
			opening.Wait()
		})
	}
}

// TestKilled: a job whose process was killed is done by another.
func TestKilled(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		cmd, said := start(t, database, "hang")
		if line := <-said; line != "hang" {
			t.Fatalf("the process says %q", line)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for range said {
		}
		// Whoever waits for it does so for the lease, and not until it is taken up.
		other, endOther, err := openQueue(t.Context(), database, job.Handlers{}, &job.Options{Lease: short})
		if err != nil {
			t.Fatal(err)
		}
		defer endOther()
		if err := other.Wait(t.Context(), "hang"); !errors.Is(err, job.ErrAbandoned) {
			t.Errorf("waiting for a job whose process was killed ended with %v", err)
		}
		if err := other.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		// Time goes by: nobody speaks for the job, and whoever looks for such jobs
		// is elected anew, for the dead process still holds the office.
		run(t, database, func(db *sql.DB) error {
			_, lost := db.Exec(`UPDATE river_job SET attempted_at = '2001-02-03 04:05:06'`)
			_, vacant := db.Exec(`DELETE FROM river_leader`)
			return errors.Join(lost, vacant)
		})
		taken := make(chan string, 10)
		q, end, err := openQueue(t.Context(), database, job.Handlers{"work": func(_ context.Context, j job.Job) error {
			taken <- j.Key
			return nil
		}}, &job.Options{Backoff: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		look := time.NewTicker(often) // and not at once again: the processor belongs to the queue
		defer look.Stop()
		for len(taken) == 0 && !t.Failed() { // it is not due for some seconds once it was found
			run(t, database, func(db *sql.DB) error {
				_, err := db.Exec(`UPDATE river_job SET state = 'available' WHERE state = 'retryable'`)
				return err
			})
			<-look.C
		}
		if key := <-taken; key != "hang" {
			t.Errorf("%q was taken up", key)
		}
		if err := q.Wait(t.Context(), "hang"); err != nil {
			t.Error(err)
		}
		if err := q.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if len(taken) > 0 {
			t.Error("it was done twice")
		}
	})
}

// TestHeld: as long as a process does a job it says so, however long it takes.
func TestHeld(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		q, end, err := openQueue(t.Context(), database, job.Handlers{"work": func(ctx context.Context, _ job.Job) error {
			seen := map[string]bool{}
			for len(seen) < 3 {
				var at string
				run(t, database, func(db *sql.DB) error {
					return db.QueryRowContext(ctx, `SELECT CAST(attempted_at AS TEXT) FROM river_job WHERE state = 'running'`).Scan(&at)
				})
				seen[at] = true
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			return nil
		}}, &job.Options{Lease: short})
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		if _, err := q.Put(t.Context(), job.Job{Kind: "work", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		if err := q.Wait(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if err := q.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// run runs statements beside the queue.
func run(t *testing.T, database string, f func(*sql.DB) error) {
	t.Helper()
	driver := "pgx"
	if !isPostgres(database) {
		driver, database = "sqlite", sqliteName(database)
	}
	db, err := sql.Open(driver, database)
	if err == nil {
		err = errors.Join(f(db), db.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

func isPostgres(database string) bool { return strings.HasPrefix(database, "postgres:") }
