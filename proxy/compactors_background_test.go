package proxy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// gated is a summarizer that answers what the test says, when it says so.
type gated struct {
	asked  chan struct{}
	answer chan error
}

func (*gated) Model() string { return "gated" }

func (g *gated) Generate(ctx context.Context, _ *prompt.Prompt, _ *llm.Options) (*llm.Reply, error) {
	g.asked <- struct{}{}
	select {
	case err := <-g.answer:
		const text = `{"summary":{"key_facts":["The file part_001.go was read."],"conversation_flow":[],"open_threads":[]},"state_delta":{}}`
		return &llm.Reply{Text: text, JSON: text, Stop: wire.StopEnd}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// proxiedWorkstream is a proxy whose conversations are compacted by the jobs of a queue.
func proxiedWorkstream(t *testing.T, patience, backoff time.Duration) (*gated, *proxytest.Upstream, func(first string) *agent, job.Queue, *proxy.Proxy) {
	t.Helper()
	g := &gated{make(chan struct{}, 10), make(chan error)}
	up := strict(t)
	var p *proxy.Proxy
	q := job.NewMemory(job.Handlers{proxy.CompactJob: func(ctx context.Context, j job.Job) error { return p.Work(ctx, j) }}, &job.Options{Backoff: backoff})
	url, made := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{
		Counter: counter(), Jobs: q, Patience: patience,
		Policy: policy.Workstream{Model: g, ContextSize: 15_000, OutputReserve: 500, SafetyMargin: 500},
	}})
	p = made
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		q.Stop(ctx)
	})
	return g, up, func(first string) *agent {
		a := newAgent(t, wire.Anthropic, url, false)
		a.user(first)
		a.grow(1, 9)
		return a
	}, q, p
}

// TestRequestsWaitForTheJob: under workstream a request that finds a compaction due has
// the queue make it, and waits; another conversation does not. D2, D11, D12
func TestRequestsWaitForTheJob(t *testing.T) {
	g, up, talk, _, p := proxiedWorkstream(t, time.Minute, 0)
	a := talk("Read all parts.")
	answered := make(chan said, 1)
	a.user("And now?")
	go func() {
		s, err := a.try()
		if err != nil {
			t.Error(err)
		}
		answered <- s
	}()
	select {
	case <-g.asked:
	case s := <-answered:
		t.Fatalf("status %d, %s: the model was not asked", s.status, s.action())
	}
	other := newAgent(t, wire.Anthropic, a.url, false)
	other.user("Hello.")
	if s := other.ask(); s.status != 200 || len(up.Requests()) != 1 {
		t.Errorf("another conversation: status %d, %d requests upstream: the first one did not wait", s.status, len(up.Requests()))
	}
	var s said
	select {
	case g.answer <- nil:
		s = <-answered
	case s = <-answered:
		t.Fatalf("status %d, %s: it did not wait for the model", s.status, s.action())
	}
	requests := up.Requests()
	if body := string(requests[len(requests)-1].Body); s.action() != proxy.Planned || !strings.Contains(body, "Compacted context summary:") {
		t.Errorf("%s: the request is not under the plan of the job", s.action())
	}
	if n := p.Totals().Compactions; n != 1 {
		t.Errorf("%d compactions", n)
	}
}

// TestRequestsPassWhenTheJobFails: while the job rests after a failure, and when it
// takes too long, requests pass as they are, and the answer says that a compaction is
// being made. B10, D11, D12
func TestRequestsPassWhenTheJobFails(t *testing.T) {
	g, up, talk, q, _ := proxiedWorkstream(t, time.Minute, time.Hour)
	a := talk("Read all parts.")
	a.user("And now?")
	answered := make(chan struct{})
	go func() {
		select {
		case <-g.asked:
			select {
			case g.answer <- errors.New("no luck"):
			case <-answered:
			}
		case <-answered:
		}
	}()
	s := a.ask()
	close(answered)
	if got := s.header.Get(proxy.ReasonHeader); s.status != 200 || s.action() != proxy.Passed || got != "compacting" {
		t.Errorf("status %d, %s, %s", s.status, s.action(), got)
	}
	a.user("Go on.")
	if s = a.ask(); s.status != 200 || s.action() != proxy.Passed || s.header.Get(proxy.ReasonHeader) != "compacting" {
		t.Errorf("while the job rests: status %d, %s", s.status, s.action())
	}
	if busy, err := q.Busy(t.Context(), job.CompactKey("", s.thread())); err != nil || !busy || len(up.Requests()) != 2 {
		t.Errorf("busy %v, %v, %d requests", busy, err, len(up.Requests()))
	}

	g, _, talk, q, _ = proxiedWorkstream(t, time.Millisecond, 0)
	a = talk("Read all parts.")
	a.user("And now?")
	if s := a.ask(); s.status != 200 || s.action() != proxy.Passed || s.header.Get(proxy.ReasonHeader) != "compacting" {
		t.Fatalf("after a millisecond: status %d, %s", s.status, s.action())
	} else if busy, err := q.Busy(t.Context(), job.CompactKey("", s.thread())); err != nil || !busy {
		t.Fatalf("no job makes it: %v", err)
	}
	<-g.asked // it is being made
}
