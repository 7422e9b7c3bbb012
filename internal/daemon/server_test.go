package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestListen: without keys only addresses of this machine are opened.
func TestListen(t *testing.T) {
	open, err := daemon.New(daemon.Config{})
	if err != nil {
		t.Fatal(err)
	}
	locked, err := daemon.New(daemon.Config{Keys: apikey.New(&apikeytest.Memory{}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		server  *daemon.Server
		address string
		ok      bool
	}{
		{open, "127.0.0.1:0", true}, {open, "localhost:0", true}, {open, "0.0.0.0:0", false}, {open, ":0", false}, {open, "[::]:0", false},
		{locked, "127.0.0.1:0", true}, {locked, "0.0.0.0:0", true},
	} {
		listener, err := tt.server.Listen(t.Context(), tt.address)
		if err == nil {
			listener.Close()
		}
		if tt.ok && err != nil || !tt.ok && !errors.Is(err, daemon.ErrOpen) {
			t.Errorf("%s: %v", tt.address, err)
		}
	}
}

// slow is a policy that compacts once it is let.
type slow struct {
	policy.Policy
	begun, let chan struct{}
}

func (p slow) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	close(p.begun)
	<-p.let
	return p.Policy.Plan(ctx, s)
}

// serving runs a daemon as the command does. What it returns stops it and waits.
func serving(t *testing.T, s *daemon.Server) (url string, stop func() error) {
	t.Helper()
	listener, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	return "http://" + listener.Addr().String(), func() error {
		cancel()
		return <-served
	}
}

// TestShutdown: when the daemon stops, a request that is being answered is
// finished, streams end, and nothing new is taken.
func TestShutdown(t *testing.T) {
	p := slow{policy.Auto{}, make(chan struct{}), make(chan struct{})}
	config := daemon.Config{}
	config.Compactor.Policy = p
	s, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	url, stop := serving(t, s)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := api.NewClient(url, &api.Options{HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	stream, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v1/threads/t/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	watching, err := transport.RoundTrip(stream)
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Body.Close()
	type prepared struct {
		*api.Prepared
		error
	}
	answer := make(chan prepared, 1)
	long := strings.Repeat("The build failed at the linker. ", 3000)
	go func() {
		p, err := c.Prepare(t.Context(), "t", api.Any, api.Step{Budget: 4000, Messages: []neutral.Message{said("user", long), said("assistant", long), said("user", "Go on.")}})
		answer <- prepared{p, err}
	}()
	<-p.begun
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	// The stream ends when the daemon has begun to stop.
	if _, err := io.Copy(io.Discard, watching.Body); err != nil {
		t.Errorf("the stream did not end well: %v", err)
	}
	close(p.let)
	if a := <-answer; a.error != nil || a.PlanVersion != 1 {
		t.Errorf("the request was not finished: %+v", a)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := c.Thread(t.Context(), "t"); err == nil {
		t.Error("the daemon still answers")
	}
}

// TestDrain: a request that takes longer than the daemon waits is cut off, and
// the error says so.
func TestDrain(t *testing.T) {
	begun, let := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-let
	})
	s, err := daemon.New(daemon.Config{Proxy: func(string) (http.Handler, error) { return slow, nil }, Drain: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	url, stop := serving(t, s)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	failed := make(chan error, 1)
	go func() {
		answer, err := (&http.Client{Transport: transport}).Get(url + "/v1/models")
		if err == nil {
			answer.Body.Close()
		}
		failed <- err
	}()
	<-begun
	if err := stop(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(let)
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
}

// TestReady: a daemon whose store does not answer, or that stops, is alive but
// not ready.
func TestReady(t *testing.T) {
	broken := errors.New("no route to host")
	h := start(t, daemon.Config{Ready: func(context.Context) error { return broken }})
	if answer, body := h.do(t, "GET", "/readyz", ""); answer.StatusCode != 503 || strings.Contains(body, "route") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	broken = nil
	if answer, _ := h.do(t, "GET", "/readyz", ""); answer.StatusCode != 200 {
		t.Error(answer.StatusCode)
	}
	h.Stop()
	if answer, _ := h.do(t, "GET", "/readyz", ""); answer.StatusCode != 503 {
		t.Error(answer.StatusCode)
	}
	if answer, _ := h.do(t, "GET", "/healthz", ""); answer.StatusCode != 200 {
		t.Error(answer.StatusCode)
	}
}

// TestEventsResume: a stream goes on behind the last event that was seen, and
// gets what happens while it is open. A18
func TestEventsResume(t *testing.T) {
	h := filled(t, daemon.Config{})
	c := h.client(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", h.url+"/v1/threads/t/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", "1")
	answer, err := h.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Scan() // ": watching"
	if _, err := c.Undo(ctx, "t", api.Any, 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	for lines.Scan() && len(got) < 3 {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, ":") {
			got = append(got, line)
		}
	}
	if len(got) < 3 || got[0] != "id: 2" || got[1] != "event: plan_committed" || !strings.Contains(got[2], `"version":1`) {
		t.Fatalf("%q", got)
	}
	cancel()
	for w, err := range c.Events(t.Context(), "t", "1") {
		if err != nil || w.ID != "2" || w.Event.Type != event.PlanCommitted {
			t.Fatalf("%+v: %v", w, err)
		}
		break
	}
}

// TestStreamsAreLimited: a tenant may not hold open more streams than allowed, and
// a closed one makes room.
func TestStreamsAreLimited(t *testing.T) {
	h := filled(t, daemon.Config{Limits: daemon.Limits{Streams: 1}})
	first, err := http.NewRequestWithContext(t.Context(), "GET", h.url+"/v1/threads/t/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	open, err := h.http.Do(first)
	if err != nil || open.StatusCode != 200 {
		t.Fatalf("%v: %v", open, err)
	}
	answer, body := h.do(t, "GET", "/v1/threads/t/events", "")
	if answer.StatusCode != 429 || answer.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	h.Stop()
	io.Copy(io.Discard, open.Body)
	open.Body.Close()
}

// TestRate: who asks too often is told how long to wait, and may go on then.
func TestRate(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	keys := apikey.New(&apikeytest.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys, Limits: daemon.Limits{Rate: 1, Burst: 2}, Now: func() time.Time { return now }})
	first, other := key(t, keys, "a", apikey.Read), key(t, keys, "a", apikey.Read)
	ask := func(token string) int {
		answer, _ := h.do(t, "GET", "/v1/threads", "", "Authorization", "Bearer "+token)
		if answer.StatusCode == 429 && answer.Header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After %q", answer.Header.Get("Retry-After"))
		}
		return answer.StatusCode
	}
	for i, want := range []int{200, 200, 429, 429} {
		if got := ask(first); got != want {
			t.Errorf("request %d: %d, want %d", i, got, want)
		}
	}
	if got := ask(other); got != 200 {
		t.Errorf("another key: %d", got)
	}
	now = now.Add(time.Second)
	for i, want := range []int{200, 429} {
		if got := ask(first); got != want {
			t.Errorf("after a second, request %d: %d, want %d", i, got, want)
		}
	}
	now = now.Add(time.Hour)
	if got := ask(first); got != 200 {
		t.Errorf("after an hour: %d", got)
	}
}

// TestBackground: with a queue, a compaction is prepared at the soft mark and is
// there before it must be, for the tenant whose thread it is.
func TestBackground(t *testing.T) {
	var queue *job.Memory
	keys := apikey.New(&apikeytest.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys, Jobs: func(work job.Handlers, o *job.Options) (job.Queue, error) {
		queue = job.NewMemory(work, o)
		return queue, nil
	}})
	defer func() {
		if err := queue.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	const tenant = "a:b c" // a name that could be taken for two
	c := h.client(t, key(t, keys, tenant, apikey.Read|apikey.Write))
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	for step := range 40 {
		p, err := c.Prepare(t.Context(), "t", api.Any, api.Step{API: wire.Anthropic, Body: stepRequest(step), Window: 30_000, Output: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if err := queue.Wait(t.Context(), job.CompactKey("a%3Ab+c", "t")); err != nil {
			t.Fatal(err)
		}
		if now, err := c.Thread(t.Context(), "t"); err != nil || now.PlanVersion > p.PlanVersion {
			if err != nil {
				t.Fatal(err)
			}
			made, err := c.Plan(t.Context(), "t", now.PlanVersion)
			if err != nil || made.Plan.Empty() || made.Plan.Actions()[made.Plan.Record(made.Plan.Refs()[0]).Covers().First()].Action == plan.Include {
				t.Fatalf("%+v: %v", made, err)
			}
			return
		}
		if _, err := c.Finish(t.Context(), "t", api.Any, api.Answer{API: wire.Anthropic, Response: response(step)}); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("nothing was prepared in the background")
}

// TestJobsAreCounted: attempts of background jobs are in the metrics, and one that
// is given up is in the log, without what its error quotes.
func TestJobsAreCounted(t *testing.T) {
	var queue *job.Memory
	var log journal
	h := start(t, daemon.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Jobs: func(work job.Handlers, o *job.Options) (job.Queue, error) {
		once := *o
		once.Attempts = 1
		queue = job.NewMemory(work, &once)
		return queue, nil
	}})
	for key, args := range map[string]string{"good": `{"thread":"t"}`, "bad": `{"domain":"%zzCANARY"}`} {
		if _, err := queue.Put(t.Context(), job.Job{Kind: palimpsest.CompactJob, Key: key, Args: []byte(args)}); err != nil {
			t.Fatal(err)
		}
		if err := queue.Wait(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if err := queue.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, page := h.do(t, "GET", "/metrics", "")
	for _, want := range []string{`palimpsest_job_attempts_total{kind="compact",outcome="done"} 1`, `palimpsest_job_attempts_total{kind="compact",outcome="failed"} 1`} {
		if !strings.Contains(page, want) {
			t.Errorf("the metrics do not have %s", want)
		}
	}
	if text := log.String(); strings.Count(text, "kind=compact") != 1 || !strings.Contains(text, "domain cannot be read") || strings.Contains(text, "CANARY") {
		t.Errorf("the log is\n%s", text)
	}
}

// TestETags: the tag of an answer is the version that the next write of its kind
// names, a problem has none, and what was done cannot be done with the tag of
// before.
func TestETags(t *testing.T) {
	h := filled(t, daemon.Config{})
	const one = "/v1/threads/t"
	message := `{"messages":[{"role":"user","parts":[{"type":"text","text":"x"}]}]}`
	answer := `{"messages":[{"role":"assistant","parts":[{"type":"text","text":"y"}]}]}`
	tag := map[string]string{}
	for _, tt := range []struct{ method, path, body, match, gives, want string }{
		{"POST", "/v1/threads", `{"id":"new"}`, "", "", `"0.0"`},
		{"GET", one, "", "", "", `"2.0"`},
		{"GET", one + "/messages", "", "", "log", `"2"`},
		{"POST", one + "/messages", message, "log", "log", `"3"`},
		{"POST", one + "/prepare", message, "log", "log", `"4"`},
		{"POST", one + "/finish", answer, "log", "log", `"5"`},
		{"POST", one + "/render", `{}`, "", "", `"5"`},
		{"GET", one + "/plans", "", "", "plans", `"0"`},
		{"POST", one + "/undo", `{"version":0}`, "plans", "plans", `"1"`},
		{"GET", one + "/plans/current", "", "", "plans", `"1"`},
		{"POST", one + "/memory", `{"entries":["z"]}`, "plans", "plans", `"2"`},
		{"GET", one + "/plans/1", "", "", "", `"1"`},
		{"GET", one, "", "", "", `"5.2"`},
	} {
		var header []string
		before := tag[tt.match]
		if tt.match != "" {
			header = []string{"If-Match", before}
		}
		got, body := h.do(t, tt.method, tt.path, tt.body, header...)
		if got.StatusCode >= 300 || got.Header.Get("ETag") != tt.want {
			t.Errorf("%s %s: %d with the tag %s, want %s: %s", tt.method, tt.path, got.StatusCode, got.Header.Get("ETag"), tt.want, body)
		}
		tag[tt.gives] = got.Header.Get("ETag")
		if tt.match != "plans" {
			continue
		}
		if got, body := h.do(t, tt.method, tt.path, tt.body, header...); got.StatusCode != 412 || got.Header.Get("ETag") != "" {
			t.Errorf("%s %s with the tag of before: %d with the tag %q: %s", tt.method, tt.path, got.StatusCode, got.Header.Get("ETag"), body)
		}
	}
}

// TestOperations: something answers each operation, if only that it cannot use the request.
func TestOperations(t *testing.T) {
	h := start(t, daemon.Config{})
	if _, err := h.client(t, "").CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	for _, op := range api.Operations() {
		if op.Streams() {
			continue // it has no end
		}
		path, body := strings.NewReplacer("{thread}", "t", "{version}", "1", "{artifact}", "a", "{session}", "s").Replace(op.Path), ""
		if op.Request != nil {
			body = "{}"
		}
		if answer, text := h.do(t, op.Method, path, body); answer.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%s: %d %s", op.ID, answer.StatusCode, text)
		}
	}
}
