package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/job/river"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// flaky is a summarizer that fails every second time.
type flaky struct{ asked atomic.Int64 }

func (*flaky) Model() string { return "flaky" }

func (f *flaky) Generate(context.Context, *prompt.Prompt, *llm.Options) (*llm.Reply, error) {
	if f.asked.Add(1)%2 == 1 {
		return nil, &llm.APIError{Kind: llm.ErrServer}
	}
	const text = `{"summary":{"key_facts":["The build failed at the linker."],"conversation_flow":[],"open_threads":[]},"state_delta":{}}`
	return &llm.Reply{Text: text, JSON: text, Stop: wire.StopEnd, Message: thread.Message{Role: thread.Assistant}}, nil
}

// TestWorkstreamOnTwoDaemons: four conversations under workstream go to and fro between
// two daemons on one PostgreSQL whose summarizer fails every second time, and then the
// process that compacts one of them is dead. Each message is in the log once and shown
// or summarized once, each plan goes on from the one before it, each compaction is told
// once, and who waits for a job goes on when it has failed, or nobody speaks for it. D8,
// D11, D12
func TestWorkstreamOnTwoDaemons(t *testing.T) {
	const threads, turns, lease = 4, 24, 200 * time.Millisecond
	address := pgtest.Database(t)
	model, told := &flaky{}, &heard{}
	w := policy.Workstream{Model: model, ContextSize: 4_000, OutputReserve: 300, SafetyMargin: 300}
	var clients [2]*api.Client
	var db *postgres.DB
	var queues [2]job.Queue
	for n := range clients {
		opened, err := postgres.Open(t.Context(), address, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { opened.Close() })
		db = opened
		// Without end: a step that waits for anything but the job hangs.
		compactor := palimpsest.Config{Policy: w, Events: told, Patience: time.Hour}
		clients[n] = start(t, daemon.Config{Store: opened, Compactor: compactor, Limits: daemon.Limits{Rate: 100_000},
			Jobs: func(work job.Handlers, o *job.Options) (job.Queue, error) {
				o.Lease, o.Backoff = lease, 10*time.Millisecond
				q, err := river.OnPostgres(context.WithoutCancel(t.Context()), opened.Pool(), work, o)
				if err != nil {
					return nil, err
				}
				t.Cleanup(func() { q.Stop(context.Background()) })
				queues[n] = q
				return q, nil
			}}).client(t, "")
	}
	step := func(id string, n int, c *api.Client) {
		p, err := c.Prepare(t.Context(), id, api.Any, api.Step{API: wire.Chat, Messages: []neutral.Message{said("user", fmt.Sprintf("Turn %d of %s: why did the build fail?", n, id))}})
		if err != nil {
			t.Error(err)
			return
		}
		if !strings.Contains(string(p.Body), fmt.Sprintf("Turn %d of %s", n, id)) || !strings.Contains(string(p.Body), "Turn 0 of "+id) {
			t.Errorf("%s, turn %d: the first request or the latest is not in the prompt: %.300s", id, n, p.Body)
		}
		if _, err := c.Finish(t.Context(), id, api.Any, api.Answer{Messages: []neutral.Message{said("assistant", strings.Repeat("The build failed at the linker. ", 30))}}); err != nil {
			t.Error(err)
		}
	}
	var all sync.WaitGroup
	for k := range threads {
		id := fmt.Sprint("thread-", k)
		if _, err := clients[0].CreateThread(t.Context(), api.NewThread{ID: id}); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for n := range turns {
				step(id, n, clients[n%2])
			}
		})
	}
	all.Wait()
	t.Logf("the summarizer was asked %d times", model.asked.Load())
	// Jobs that were put at the end of the last turns come to their end.
	for k := range threads {
		err := job.ErrAbandoned // by a process that is held up, which is here too
		for errors.Is(err, job.ErrAbandoned) {
			err = queues[1].Wait(t.Context(), job.CompactKey("", fmt.Sprint("thread-", k)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// A process took up a job and was killed. Nobody takes it up for an hour.
	if _, err := db.Pool().Exec(t.Context(), `INSERT INTO river_job (args, kind, max_attempts, attempt, attempted_at, attempted_by, state)
		VALUES ('{"kind":"compact","key":"compact::thread-0"}', 'palimpsest', 2, 1, now() + interval '1 hour', '{dead}', 'running')`); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	step("thread-0", turns, clients[0])
	if waited := time.Since(begun); waited < lease {
		t.Errorf("beside a job whose process was killed the step waited %v, the lease is %v", waited, lease)
	}
	// The end of that step may have put a job as well, and plans are counted below.
	for _, q := range queues {
		q.Stop(context.WithoutCancel(t.Context()))
	}
	plans := 0
	for k := range threads {
		id := fmt.Sprint("thread-", k)
		log, err := clients[1].Log(t.Context(), id, "", 500)
		if err != nil {
			t.Fatal(err)
		}
		want := 2 * turns
		if k == 0 {
			want += 2
		}
		if len(log.Items) != want {
			t.Errorf("%s: %d messages in the log, want %d", id, len(log.Items), want)
		}
		for n, m := range log.Items {
			if n%2 == 0 && m.Parts[0].Text != fmt.Sprintf("Turn %d of %s: why did the build fail?", n/2, id) {
				t.Errorf("%s: message %d is %q", id, n, m.Parts[0].Text)
			}
		}
		th, err := clients[1].Thread(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		plans += th.PlanVersion
		covered := 0
		for v := 1; v <= th.PlanVersion; v++ {
			p, err := clients[1].Plan(t.Context(), id, v)
			if err != nil {
				t.Fatal(err)
			}
			ids := p.Plan.Summarizations[0].Span.MessageIDs
			if len(p.Plan.Summarizations) != 1 || len(ids) <= covered || string(ids[0]) != log.Items[0].ID || string(ids[len(ids)-1]) != log.Items[len(ids)-1].ID {
				t.Errorf("%s, plan %d: stands for %d messages, the one before it for %d", id, v, len(ids), covered)
			}
			covered = len(ids)
		}
	}
	if done := len(told.of(event.Completed)); plans < threads || done != plans {
		t.Errorf("%d plans are in force or were, %d compactions were told of", plans, done)
	}
	t.Logf("%d plans, %d failures told", plans, len(told.of(event.Failed)))
}
