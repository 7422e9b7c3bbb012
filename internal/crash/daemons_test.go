package crash_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/crash"
	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// serve is `palimpsest serve` in a process of its own.
func serve(ctx context.Context, p place, out io.Writer) error {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--store", p.Store, "--rate", "100000", "--burst", "100000"}
	if status := cli.Run(ctx, args, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: out}); status != 0 {
		return fmt.Errorf("status %d", status)
	}
	return nil
}

// daemon starts a daemon and returns its client. dead is closed when it has ended.
func daemon(t *testing.T, p place, environment ...string) (c *api.Client, dead <-chan struct{}) {
	t.Helper()
	folder := t.TempDir() // nobody else's settings
	cmd := command(t, task{Do: "serve", Place: p}, append(environment, "XDG_CONFIG_HOME="+folder, "XDG_DATA_HOME="+folder)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	address, log := "", ""
	lines := bufio.NewScanner(out)
	for address == "" && lines.Scan() {
		log += lines.Text() + "\n"
		_, address, _ = strings.Cut(lines.Text(), "serving on ")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
		}
		// How it ended is the test's to know.
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		// It may be dead already.
		_ = cmd.Process.Kill()
		<-ended
	})
	if address == "" {
		t.Fatalf("palimpsest serve has ended:\n%s", log)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	if c, err = api.NewClient(address, &api.Options{HTTP: &http.Client{Transport: transport}}); err != nil {
		t.Fatal(err)
	}
	return c, ended
}

// agent goes on with a thread by one step: it asks for a prompt and answers with
// a call, whose result comes with the next step.
type agent struct {
	id            string
	step, version int
}

func (a *agent) next(ctx context.Context, c *api.Client) error {
	m := neutral.Message{Role: "user", Parts: []neutral.Part{{Type: neutral.TextPart, Text: "Find out why the build fails."}}}
	if a.step > 0 {
		var lines strings.Builder
		for n := range 30 {
			fmt.Fprintf(&lines, "%s_%d_%d.go:%d: func Handle%d(r *Request) error\n", a.id, a.step, n, n*7, a.step*100+n)
		}
		m = neutral.Message{Role: "tool", Parts: []neutral.Part{{
			Type: neutral.ToolResultPart, CallID: fmt.Sprint("call_", a.step-1), Tool: "Grep",
			Content: []neutral.Part{{Type: neutral.TextPart, Text: lines.String()}},
		}}}
	}
	p, err := c.Prepare(ctx, a.id, a.version, api.Step{Model: "claude-sonnet-4-5", Base: &neutral.Prompt{}, Messages: []neutral.Message{m}, Window: 16_000, Output: 1000})
	if err != nil {
		return err
	}
	call := neutral.Part{Type: neutral.ToolCallPart, CallID: fmt.Sprint("call_", a.step), Tool: "Grep", Arguments: fmt.Sprintf(`{"pattern":"Handle%d"}`, a.step)}
	done, err := c.Finish(ctx, a.id, p.Version, api.Answer{Messages: []neutral.Message{{Role: "assistant", Parts: []neutral.Part{call}}}})
	if err != nil {
		return err
	}
	a.version = done.Version
	a.step++
	return nil
}

// TestTwoDaemons: two daemons share a server, and one of them dies in the middle
// of a compaction that it makes in the background. The other takes the work up,
// each compaction happens once, and nothing that was acknowledged is lost.
func TestTwoDaemons(t *testing.T) {
	t.Parallel() // it waits most of the time
	ctx := t.Context()
	p := place{Store: pgtest.Database(t), Folder: t.TempDir(), Master: keyring.NewMaster()}
	// One gets nothing but jobs, and dies in its first compaction.
	_, dead := daemon(t, p, crash.Variable+"=commit: plan")
	serving, _ := daemon(t, p)
	conn, err := pgx.Connect(ctx, p.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	var agents []*agent
	for died, more := false, 0; more < 3; {
		select {
		case <-dead:
			if !died {
				timeGoesBy(t, conn)
			}
			died = true
		default:
		}
		if died {
			more++
		} else {
			agents = append(agents, &agent{id: fmt.Sprint("thread-", len(agents))})
			if len(agents) > 60 {
				t.Fatal("the daemon did not come to a compaction")
			}
			if _, err := serving.CreateThread(ctx, api.NewThread{ID: agents[len(agents)-1].id}); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range agents {
			if err := a.next(ctx, serving); err != nil {
				t.Fatalf("%+v: %v", a, err)
			}
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for left := 1; left > 0; <-tick.C {
		// What was taken up again is not due for some seconds.
		if _, err := conn.Exec(ctx, `UPDATE river_job SET state = 'available' WHERE state = 'retryable'`); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(ctx, `SELECT count(*) FROM river_job WHERE state NOT IN ('completed', 'discarded', 'cancelled')`).Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
	var unsuccessful, rescued int
	if err := conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state <> 'completed'), count(*) FILTER (WHERE attempt > 1) FROM river_job`).Scan(&unsuccessful, &rescued); err != nil || unsuccessful != 0 || rescued == 0 {
		t.Errorf("%d jobs failed, %d were taken up again: %v", unsuccessful, rescued, err)
	}

	db, err := dsn.Open(ctx, p.Store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, compactions := db.Tenant(""), 0
	for _, a := range agents {
		log, err := s.Log.Load(ctx, a.id)
		if err != nil || log.Len() != a.version || a.version != 2*a.step {
			t.Errorf("%s: %d messages after %d steps, version %d: %v", a.id, log.Len(), a.step, a.version, err)
		}
		info, err := s.Catalog.Thread(ctx, a.id)
		if err != nil {
			t.Fatal(err)
		}
		before := -1
		for n := 1; n <= info.Plans; n++ {
			q, err := s.Plans.Plan(ctx, a.id, n)
			if err != nil || q.ThreadVersion <= before {
				t.Errorf("%s: plan %d is for %d messages, the one before for %d: %v", a.id, n, q.ThreadVersion, before, err)
				continue
			}
			before = q.ThreadVersion
		}
		completed := 0
		all, err := s.Events.Events(ctx, a.id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if e.Type == event.Completed {
				completed++
			}
		}
		if completed != info.Plans {
			t.Errorf("%s: %d plans, %d completed compactions", a.id, info.Plans, completed)
		}
		compactions += info.Plans
	}
	sound(ctx, t, &opened{db: db})
	t.Logf("%d threads, %d compactions, %d jobs taken up again", len(agents), compactions, rescued)
}

// timeGoesBy: nobody has spoken for the job of the dead for a while, nor for its
// office, which is to look for such jobs.
func timeGoesBy(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	tag, err := conn.Exec(t.Context(), `UPDATE river_job SET attempted_at = now() - interval '1 hour' WHERE state = 'running'`)
	if err != nil || tag.RowsAffected() == 0 {
		t.Fatalf("no job is left behind: %v, %v", tag, err)
	}
	// Who is told of a resignation stands for the office at once.
	_, vacant := conn.Exec(t.Context(), `DELETE FROM river_leader`)
	_, resigned := conn.Exec(t.Context(), `SELECT pg_notify(current_schema() || '.river_leadership', '{"action":"resigned","leader_id":"dead"}')`)
	if err := errors.Join(vacant, resigned); err != nil {
		t.Fatal(err)
	}
}
