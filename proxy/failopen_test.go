package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// faulty is a store and a sink of which one call does harm; faultyPolicy
// is a policy that does so.
type faulty struct {
	store.Memory
	at   string
	harm func(context.Context) error
}

func (f *faulty) hurt(ctx context.Context, at string) error {
	if at == f.at {
		return f.harm(ctx)
	}
	return nil
}

func (f *faulty) Load(ctx context.Context, id string) (*thread.Thread, error) {
	if err := f.hurt(ctx, "load"); err != nil {
		return nil, err
	}
	return f.Memory.Load(ctx, id)
}

func (f *faulty) Append(ctx context.Context, id string, version int, messages []thread.Message) (*thread.Thread, error) {
	if err := f.hurt(ctx, "append"); err != nil {
		return nil, err
	}
	return f.Memory.Append(ctx, id, version, messages)
}

func (f *faulty) Current(ctx context.Context, id string) (*plan.Plan, int, error) {
	if err := f.hurt(ctx, "current"); err != nil {
		return nil, 0, err
	}
	return f.Memory.Current(ctx, id)
}

func (f *faulty) Commit(ctx context.Context, id string, expected int, c store.Commit) (int, error) {
	if err := f.hurt(ctx, "commit"); err != nil {
		return 0, err
	}
	return f.Memory.Commit(ctx, id, expected, c)
}

type faultyPolicy struct{ *faulty }

func (faultyPolicy) Name() string { return "auto" }

func (f faultyPolicy) Due(s *policy.Situation) (bool, string) {
	if f.at == "due" {
		f.harm(context.Background())
	}
	return policy.Auto{}.Due(s)
}

func (f faultyPolicy) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	if err := f.hurt(ctx, "plan"); err != nil {
		return nil, err
	}
	return policy.Fit(ctx, s, "auto", strategy.Auto(), window/2, window/2)
}

func (f *faulty) Emit(ctx context.Context, _ event.Event) { f.hurt(ctx, "sink") }

var errDisk = errors.New("no space left on device")

// TestFaults: whatever fails here, the client is answered as the provider
// answers its own bytes, or by a smaller request that was well made.
func TestFaults(t *testing.T) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	harms := map[string]func(context.Context) error{
		"fails":  func(context.Context) error { return errDisk },
		"panics": func(context.Context) error { panic("on purpose") },
		"hangs": func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-over:
			}
			return ctx.Err()
		},
		"is deaf": func(context.Context) error { <-over; return nil },
	}
	for _, at := range []string{"load", "append", "current", "commit", "due", "plan", "sink"} {
		for name, harm := range harms {
			if at == "due" && name == "fails" || at == "sink" && name != "panics" {
				continue // they have no error to return, and may not block
			}
			t.Run(at+" "+name, func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				up.Window = 0
				f := &faulty{at: at, harm: harm}
				var told sync.Map
				sink := event.Func(func(_ context.Context, e event.Event) {
					if e.Type == event.Failed {
						told.Store(e.Err, e.Details["fallback"])
					}
				})
				deadline := time.Duration(0) // the default: a busy machine may take its time
				if name == "hangs" || name == "is deaf" {
					deadline = 300 * time.Millisecond
				}
				url, p := start(t, up, proxy.Options{Window: window, Deadline: deadline, Config: palimpsest.Config{
					Counter: counter(), Store: store.Tenant{Log: f, Plans: f}, Policy: faultyPolicy{f}, Events: event.Multi(sink, f),
				}})
				a := newAgent(t, wire.Anthropic, url, false)
				a.grow(0, 24)
				want := a.body()
				s := a.peek()
				if s.status != 200 || s.text != "ok" {
					t.Fatalf("status %d: %s", s.status, s.raw)
				}
				requests := up.Requests()
				if at == "sink" {
					if s.action() != proxy.Compacted {
						t.Errorf("a sink that panics leads to %q", s.action())
					}
					return
				}
				if len(requests) != 1 || !bytes.Equal(requests[0].Body, want) {
					t.Errorf("%d requests, the first of %d bytes in place of %d", len(requests), len(requests[0].Body), len(want))
				}
				if s.action() != proxy.Passed {
					t.Errorf("the answer says it was %q", s.action())
				}
				n := 0
				told.Range(func(_, _ any) bool { n++; return true })
				if n == 0 {
					t.Errorf("no event; totals %+v", p.Totals())
				}
			})
		}
	}
}

// TestFaultInARound: where a store fails while the model reads what was removed,
// the client is answered all the same.
func TestFaultInARound(t *testing.T) {
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			up := strict(t)
			model := &curious{t: t, inner: steps(60, false)}
			up.Model = model.answer
			f := &faulty{harm: func(context.Context) error { return errDisk }}
			url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: f, Plans: f}}})
			a := newAgent(t, api, url, stream)
			a.grow(0, 24)
			asked := 0
			for n := range 14 {
				s := a.peek0()
				if s.status != 200 || strings.Contains(string(s.raw), `"error":{`) || strings.Contains(string(s.raw), "gave no") {
					t.Fatalf("%s, stream %t, request %d: status %d: %s", api, stream, n, s.status, s.raw)
				}
				if n == 2 {
					f.at, asked = "append", model.asked
				}
			}
			if p.Totals().Faults == 0 || model.asked == asked {
				t.Errorf("%s, stream %t: no round failed", api, stream)
			}
		}
	}
}

// peek0 asks and reads nothing of the answer.
func (a *agent) peek0() said {
	res := post(a.t, a.url+a.path(), a.body(), nil)
	var b bytes.Buffer
	b.ReadFrom(res.Body)
	return said{status: res.StatusCode, header: res.Header, raw: b.Bytes()}
}

// TestRefusedForUs: a request that the provider finds invalid after we changed
// it goes out once more as the client wrote it, and the plan that was made for it is not kept. G8
func TestRefusedForUs(t *testing.T) {
	up := strict(t)
	up.Window = 0
	f, l := &faulty{}, newReports()
	url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: f, Plans: f}, Events: l}})
	a := newAgent(t, wire.Anthropic, url, false)
	a.grow(0, 24)
	want := a.body()
	up.Refuse = func(body []byte) string {
		if !bytes.Equal(body, want) {
			return "tools.0: unknown field"
		}
		return ""
	}
	s := a.peek()
	if s.status != 200 || s.action() != proxy.Passed || s.header.Get(proxy.ReasonHeader) != "refused" {
		t.Errorf("status %d, %q, %q", s.status, s.action(), s.header.Get(proxy.ReasonHeader))
	}
	if totals, all := p.Totals(), l.failures(); totals.Faults != 1 || !slices.Equal(all, []string{"internal proxy_invalid"}) {
		t.Errorf("totals: %+v, failures %v", totals, all)
	}
	if kept, n, err := f.Current(t.Context(), s.thread()); err != nil || n != 2 || !kept.Empty() {
		t.Errorf("plan %d is in force: %+v, %v", n, kept, err)
	}
}
