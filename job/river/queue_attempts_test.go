package river_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have none

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/job"
)

// zoneVariable says in a process of its own which zone the one test runs in.
const zoneVariable = "PALIMPSEST_TEST_ZONE"

// everywhere runs a test on both databases, and on SQLite, which keeps times as words, in
// zones hours from UTC as well. Each is the zone of a process, for what River left running
// reads time.Local.
func everywhere(t *testing.T, test func(t *testing.T, database string)) {
	onSQLite := func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "jobs.db")) }
	if os.Getenv(zoneVariable) != "" {
		if zone, _ := time.Now().Zone(); zone == "UTC" {
			t.Fatalf("%s=%s: the zone is not known", zoneVariable, os.Getenv(zoneVariable))
		}
		onSQLite(t)
		return
	}
	t.Run("sqlite", onSQLite)
	t.Run("postgres", func(t *testing.T) { test(t, pgtest.Database(t)) })
	for _, zone := range []string{"Asia/Tokyo", "America/Panama"} {
		t.Run(zone, func(t *testing.T) {
			name, _, _ := strings.Cut(t.Name(), "/")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$", "-test.v")
			cmd.Env = append(os.Environ(), "TZ="+zone, zoneVariable+"="+zone)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestPause: between the two attempts that a job has lies the pause of seed D.
// The test reads when the second is due and does not wait for it; that is so
// wherever the machine stands. D11
func TestPause(t *testing.T) {
	everywhere(t, func(t *testing.T, database string) {
		q, end, err := openQueue(t.Context(), database, job.Handlers{"work": func(context.Context, job.Job) error { return errors.New("no luck") }}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		if _, err := q.Put(t.Context(), job.Job{Kind: "work", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		// River's driver keeps the one as Go writes times, the other as SQLite does.
		pause := `(julianday(substr(scheduled_at, 1, 23)) - julianday(substr(attempted_at, 1, 23))) * 86400`
		if isPostgres(database) {
			pause = `extract(epoch FROM scheduled_at - attempted_at)`
		}
		var seconds float64
		var attempts, most int
		for attempts == 0 && !t.Failed() { // until the first attempt is over
			run(t, database, func(db *sql.DB) error {
				err := db.QueryRow(`SELECT `+pause+`, attempt, max_attempts FROM river_job WHERE attempt > 0 AND state <> 'running'`).Scan(&seconds, &attempts, &most)
				if errors.Is(err, sql.ErrNoRows) {
					return nil
				}
				return err
			})
		}
		// River rounds times, and an attempt takes a moment itself.
		if seconds < 2.9 || seconds > 5 || attempts != 1 || most != 2 {
			t.Errorf("%.2f s after attempt %d of %d, want 3 s after the first of 2", seconds, attempts, most)
		}
		if err := q.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// TestHandOver: a job that was interrupted when its process stopped is done by
// the next, and the interruption does not count as an attempt.
func TestHandOver(t *testing.T) {
	everywhere(t, func(t *testing.T, database string) {
		begun, done := make(chan struct{}), make(chan struct{})
		first, endFirst, err := openQueue(t.Context(), database, job.Handlers{"work": func(ctx context.Context, _ job.Job) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		}}, &job.Options{Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Put(t.Context(), job.Job{Kind: "work", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Stop(ctx); err == nil {
			t.Error("the job was not interrupted")
		}
		endFirst()
		second, endSecond, err := openQueue(t.Context(), database, job.Handlers{"work": func(context.Context, job.Job) error {
			close(done)
			return nil
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer endSecond()
		<-done
		if err := second.Wait(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if err := second.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
