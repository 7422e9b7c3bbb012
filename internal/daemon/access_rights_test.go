package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// spender counts what costs money or work: vectors, summaries, sizes that a provider
// counts, jobs.
type spender struct {
	job.Queue
	next  summarize.Summarizer
	calls atomic.Int64
}

func (s *spender) Embed(_ context.Context, texts []string) ([][]float32, error) {
	s.calls.Add(1)
	vectors := make([][]float32, len(texts))
	for i := range vectors {
		vectors[i] = []float32{1, 0}
	}
	return vectors, nil
}

func (s *spender) CountTokens(context.Context, *prompt.Prompt) (int, error) {
	s.calls.Add(1)
	return 0, fmt.Errorf("not counted")
}

func (s *spender) Put(ctx context.Context, j job.Job) (bool, error) {
	s.calls.Add(1)
	return s.Queue.Put(ctx, j)
}

func (s *spender) Summarize(ctx context.Context, in summarize.Input) (summarize.Result, error) {
	s.calls.Add(1)
	return s.next.Summarize(ctx, in)
}

// eachOperation has a thread with plans and artifacts of which each message says CANARY,
// and calls each operation with a body that it takes.
func eachOperation(t *testing.T, h *host, token, other string, check func(op api.Operation, answer *http.Response, body string)) {
	t.Helper()
	c := h.client(t, token)
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t", Labels: map[string]string{"about": "CANARY"}}); err != nil {
		t.Fatal(err)
	}
	canary := func(data []byte) []byte {
		return []byte(strings.NewReplacer("Handle", "CANARY", "Step ", "CANARY ", "Find out", "CANARY").Replace(string(data)))
	}
	for step := range 30 {
		if _, err := c.Prepare(t.Context(), "t", api.Any, api.Step{API: wire.Anthropic, Body: canary(stepRequest(step)), Window: 12_000, Output: 1000}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Finish(t.Context(), "t", api.Any, api.Answer{API: wire.Anthropic, Response: canary(response(step))}); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := c.Artifacts(t.Context(), "t", "", 0)
	if err != nil || len(kept.Items) == 0 {
		t.Fatalf("nothing was externalized: %v", err)
	}
	p, err := c.Plan(t.Context(), "t", api.Any)
	if err != nil || len(p.Plan.Refs()) == 0 {
		t.Fatalf("no plan: %v", err)
	}
	hidden := string(p.Plan.Since(nil)[0].Covers().MessageIDs[0])
	assistant := `{"messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]}]`
	bodies := map[string]string{
		"create": `{"id":"u"}`, "append": `{"messages":[{"role":"user","parts":[{"type":"text","text":"x"}]}]}`, "finish": assistant + `}`,
		"answer": `{"type":"tool_call","call_id":"c","tool":"recall","arguments":"{\"query\":\"CANARY417\"}"}`, "undo": `{"version":1}`, "expand": `{"message_id":"` + hidden + `"}`,
		"cut-off": assistant + `,"step":{"window":12000}}`, "remember": `{"entries":["x"]}`, "render": `{"step":{"window":12000}}`,
	}
	for _, op := range api.Operations() {
		if op.ID == "delete" || op.ID == "events" {
			continue // the one needs admin, the other goes on for ever
		}
		path, body := strings.NewReplacer("{thread}", "t", "{version}", "1", "{artifact}", kept.Items[0].ID).Replace(op.Path), ""
		if op.ID == "recall" {
			path += "?q=CANARY417"
		}
		if op.Request != nil {
			if body = bodies[op.ID]; body == "" {
				body = `{"window":12000}`
			}
		}
		if op.ID == "outcome" || op.ID == "compact" {
			body = `{}`
		}
		answer, text := h.do(t, op.Method, path, body, "Authorization", "Bearer "+other)
		check(op, answer, text)
		// What does not fit is refused without a word of what is there.
		if op.Request != nil {
			answer, text = h.do(t, op.Method, path, `{"messages":[{"id":"`+hidden+`","role":"assistant","parts":[{"type":"text","text":"y"}]}]}`, "Authorization", "Bearer "+other, "If-Match", `"3"`)
			check(op, answer, text)
		}
	}
}

// TestWriteOnlyReadsNothing: a key that may only write adds to threads, and no answer
// holds anything that was said, in its body or its header, also where it is an error.
func TestWriteOnlyReadsNothing(t *testing.T) {
	keys := apikey.New(&apikeytest.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys, Compactor: putsAside()})
	done := map[string]bool{}
	eachOperation(t, h, key(t, keys, "a", apikey.Read|apikey.Write), key(t, keys, "a", apikey.Write), func(op api.Operation, answer *http.Response, body string) {
		if text := body + fmt.Sprint(answer.Header); strings.Contains(text, "CANARY") || strings.Contains(text, "You repair builds") {
			t.Errorf("%s: %d: it reads\n%.300s", op.ID, answer.StatusCode, text)
		}
		if answer.StatusCode < 300 {
			done[op.ID] = true
		}
	})
	if len(done) != 3 || !done["create"] || !done["append"] || !done["finish"] {
		t.Errorf("it may %v", done)
	}
}

// TestReadOnlySpendsNothing: for a key that may only read no model is asked for a
// summary or for vectors, no provider counts and no job is put.
func TestReadOnlySpendsNothing(t *testing.T) {
	keys := apikey.New(&apikeytest.Memory{}, nil)
	s := &spender{next: &summarize.Extractive{}}
	c := putsAside()
	c.Measure, c.Summarizer, c.Recall.Embedder = s, s, s
	h := start(t, daemon.Config{Keys: keys, Compactor: c, Jobs: func(work job.Handlers, o *job.Options) (job.Queue, error) {
		s.Queue = job.NewMemory(work, o)
		return s, nil
	}})
	t.Cleanup(func() { s.Queue.Stop(context.Background()) })
	writer, reader := key(t, keys, "a", apikey.Read|apikey.Write), key(t, keys, "a", apikey.Read)
	before, read := int64(0), 0
	eachOperation(t, h, writer, reader, func(op api.Operation, answer *http.Response, body string) {
		if before == 0 {
			before = s.calls.Load()
		}
		if now := s.calls.Load(); now != before {
			t.Errorf("%s: %d calls", op.ID, now-before)
			before = now
		}
		if answer.StatusCode < 300 {
			read++
		}
	})
	if before == 0 || read < 10 {
		t.Errorf("%d calls were made for who may spend, %d reads were answered", before, read)
	}
	before = s.calls.Load()
	if hits, err := h.client(t, writer).Recall(t.Context(), "t", "CANARY417", nil); err != nil || len(hits) == 0 || s.calls.Load() == before {
		t.Errorf("for who may spend: %d hits, %v, %d calls", len(hits), err, s.calls.Load()-before)
	}
	if hits, err := h.client(t, reader).Recall(t.Context(), "t", "CANARY417", nil); err != nil || len(hits) == 0 {
		t.Errorf("for who may read: %d hits, %v", len(hits), err)
	}
}
