package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestNamedWindow: a window that a provider named when it refused a request is
// known from then on, after a restart as well, and of that provider alone.
func TestNamedWindow(t *testing.T) {
	memory := &store.Memory{}
	up, other := strict(t), strict(t)
	other.Window = 0 // takes all
	ask := func(up *proxytest.Upstream, first string) (said, proxy.Totals) {
		t.Helper()
		url, p := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Documents: memory}}})
		a := newAgent(t, wire.Chat, url, false)
		a.user(first)
		a.grow(1, 34)
		return a.ask(), p.Totals()
	}
	if s, totals := ask(up, "First."); s.action() != proxy.Recovered || totals.Recovered != 1 || totals.Compactions < 1 {
		t.Errorf("%q, %+v", s.action(), totals)
	}
	before := len(up.Requests())
	if s, totals := ask(up, "Second."); s.action() != proxy.Compacted || totals.Recovered != 0 || len(up.Requests()) != before+1 {
		t.Errorf("after a restart: %q, %+v, %d requests upstream", s.action(), totals, len(up.Requests())-before)
	}
	if s, _ := ask(other, "Third."); s.action() != proxy.Passed {
		t.Errorf("another provider: %q", s.action())
	}
}

// TestRecoveredInRounds: what is refused as too long in a request that the client
// does not see counts as well.
func TestRecoveredInRounds(t *testing.T) {
	for _, stream := range []bool{false, true} {
		up := strict(t)
		refusing := true
		up.Model = func(q *proxytest.Request) proxytest.Answer {
			switch n := asks(q); {
			case n == 0:
				return lookup(q)
			case refusing:
				refusing = false
				return proxytest.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`}
			}
			return proxytest.Answer{Text: "Done."}
		}
		url, p := start(t, up, smallWindow())
		a := newAgent(t, wire.Anthropic, url, stream)
		a.grow(0, 24)
		s := a.ask()
		if totals := p.Totals(); !strings.HasSuffix(s.text, "Done.") || totals.Recovered != 1 || totals.Compactions != 2 || totals.Requests != 1 || totals.TokensSent < 20_000 {
			t.Errorf("stream %t: %q, %+v", stream, s.text, totals)
		}
	}
}

// TestThinkingStays: only models that bind their thinking to what stands before it
// lose it at a compaction. Of a model that is not known nothing is believed.
func TestThinkingStays(t *testing.T) {
	for model, binds := range map[string]bool{"claude-sonnet-4-6": false, "claude-opus-5-5": true, "test-model": true} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			up.BindThinking = binds
			up.Model = steps(40, true)
			url, p := start(t, up, smallWindow())
			a := newAgent(t, wire.Anthropic, url, false)
			a.think, a.model = true, model
			a.user("Read all parts in order and tell me when you are done.")
			done := 0
			for {
				s := a.ask()
				n := 0
				requests := up.Requests()
				for _, m := range requests[len(requests)-1].Prompt.Messages {
					for _, part := range m.Parts {
						if _, ok := part.(thread.Reasoning); ok {
							n++
						}
					}
				}
				if s.action() == proxy.Compacted && (n == 0) != binds {
					t.Errorf("after %d results: %d blocks of thinking stay", done, n)
				}
				if len(s.calls) == 0 {
					break
				}
				a.results(s.calls, func(thread.ToolCall) string { done++; return result(done - 1) })
			}
			refused(t, up.Requests())
			if totals := p.Totals(); totals.Compactions < 2 || totals.Faults != 0 {
				t.Errorf("totals: %+v", totals)
			}
		})
	}
}

// TestThinkingOverChat: a model that binds its thinking does so behind every API, also where a gateway
// passes its signed thinking through (OpenRouter).
func TestThinkingOverChat(t *testing.T) {
	for model, binds := range map[string]bool{"anthropic/claude-opus-5-5": true, "anthropic/claude-sonnet-4-6": false, "test-model": false} {
		up := strict(t)
		url, p := start(t, up, smallWindow())
		a := newAgent(t, wire.Chat, url, false)
		a.model = model
		a.grow(0, 24)
		for i, m := range a.history {
			if strings.Contains(m, `"tool_calls"`) {
				a.history[i] = strings.Replace(m, `"content":null`, `"content":null,"reasoning_details":[{"type":"reasoning.text","text":"Part by part.","signature":"c2lnbmVk","format":"anthropic-claude-v1","index":0}]`, 1)
			}
		}
		s := a.ask()
		body := string(up.Requests()[0].Body)
		if kept := strings.Contains(body, "reasoning_details"); s.action() != proxy.Compacted || kept == binds || p.Totals().Faults != 0 {
			t.Errorf("%s: %q, thinking is kept: %t", model, s.action(), kept)
		}
	}
}

// TestGivenWindow: a window that somebody gave is not exceeded because a provider names a larger
// one. A smaller one replaces it, and that is told once, also after a restart.
func TestGivenWindow(t *testing.T) {
	table, err := token.ParseModels([]byte(`{"models":[{"name":"test-model","provider":"x","counter":"o200k","window":40000,"date":"2026-01-01","source":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const given = 40_000
	for name, o := range map[string]proxy.Options{
		"Window": {Window: given}, "DefaultWindow": {DefaultWindow: given}, "Models": {Models: &table}, "none": {},
	} {
		for _, named := range []int{60_000, 30_000} {
			memory, up := &store.Memory{}, strict(t)
			up.Window = 0
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if q.N > 1 {
					return proxytest.Answer{Text: "ok"}
				}
				return proxytest.Answer{Status: 400, Body: fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, named)}
			}
			for run := range 2 {
				l := newReports()
				o.Config = palimpsest.Config{Counter: counter(), Events: l, Store: store.Tenant{Documents: memory}}
				url, _ := start(t, up, o)
				a := newAgent(t, wire.Chat, url, false)
				a.user(fmt.Sprint("Run ", run))
				a.grow(1, 34)
				a.ask()
				a.grow(35, 1)
				a.ask()
				want := []string(nil)
				if name == "none" {
					want = []string{fmt.Sprintf("%d instead of 0", named)}
				} else if named < given {
					want = []string{fmt.Sprintf("%d instead of %d", named, given)}
				}
				var got []string
				for _, e := range l.of(event.WindowLearned) {
					got = append(got, fmt.Sprint(e.Details["window"], " instead of ", e.Details["instead_of"]))
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, the provider named %d, run %d: told of %q, want %q", name, named, run, got, want)
				}
				limit := given
				if name == "none" || named < given {
					limit = named
				}
				checks := l.of(event.CheckStarted)
				if e := checks[len(checks)-1]; e.BudgetLimit > limit || e.BudgetLimit < limit*2/3 {
					t.Errorf("%s, the provider named %d, run %d: the limit is %d", name, named, run, e.BudgetLimit)
				}
			}
		}
	}
}
