package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// unnamed is an upstream that says a request is too long, but not what its window is.
func unnamed(t testing.TB, model func(*proxytest.Request) proxytest.Answer) *proxytest.Upstream {
	up := strict(t)
	up.Window = 0
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		if q.Tokens <= window {
			return model(q)
		}
		q.Refused = "too long"
		return proxytest.Answer{Status: 400, Body: `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","code":"context_length_exceeded"}}`}
	}
	return up
}

func well(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: "ok"} }

// TestUnnamedWindow: where nobody says what the window is, a conversation is refused only when it
// has grown over it again, and not at each step; the agent finishes its task.
func TestUnnamedWindow(t *testing.T) {
	for _, api := range apis {
		for _, stream := range ways(t) {
			t.Run(fmt.Sprintf("%s, stream %t", api, stream), func(t *testing.T) {
				t.Parallel()
				up := unnamed(t, steps(60, false))
				url, p := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter()}})
				runTask(t, newAgent(t, api, url, stream), 60)
				totals := p.Totals()
				if n := refusedBy(up); n > 6 || int64(n) != totals.Recovered || totals.Compactions != totals.Recovered || totals.Faults != 0 {
					t.Errorf("%d of %d requests were refused, totals %+v", n, len(up.Requests()), totals)
				}
			})
		}
	}
}

// TestPlanBeforeAnother: a request that went as it came and was refused is sent under the plan of its
// conversation first. Only if that is too long as well, a new plan is made.
func TestPlanBeforeAnother(t *testing.T) {
	up, kept := unnamed(t, well), &store.Memory{}
	ask := func(results int) (said, proxy.Totals) {
		t.Helper()
		// Nothing but the conversations outlives a proxy.
		url, p := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: kept, Plans: kept, Documents: &store.Memory{}}}})
		a := newAgent(t, wire.Chat, url, false)
		a.grow(0, results)
		return a.ask(), p.Totals()
	}
	for _, c := range []struct {
		results, refused, compactions int
		why                           string
	}{
		{26, 1, 1, "the first refusal"},
		{27, 1, 0, "under the plan it fits"},
		{47, 2, 1, "under the plan it does not fit any more"},
	} {
		up.Forget()
		s, totals := ask(c.results)
		if s.status != 200 || s.action() != proxy.Recovered || refusedBy(up) != c.refused || totals.Compactions != int64(c.compactions) || totals.Recovered != 1 {
			t.Errorf("%s: status %d, %q, %d refused, %+v", c.why, s.status, s.action(), refusedBy(up), totals)
		}
	}
}

// TestWindowsInRefusals: what providers say of their window is understood, with whatever status.
func TestWindowsInRefusals(t *testing.T) {
	inChat := func(message string) string { return fmt.Sprintf(`{"error":{"message":%q,"code":400}}`, message) }
	for _, c := range []struct {
		said string
		want int // 0 for none
	}{
		{inChat("This model's maximum context length is 32768 tokens."), 32768},
		{`{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, 131072},
		{inChat("Invalid request: Your request exceeded model token limit: 262144 (requested: 280000)"), 262144},
		{inChat("prompt token count of 140000 exceeds the limit of 128000"), 128000},
		{inChat("Prompt contains 150000 tokens and 0 draft tokens, too large for model with 131072 maximum context length"), 131072},
		{`{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, 4096},
		{inChat("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens."), 272000},
		{inChat("input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again"), 200000},
		{inChat("The prompt is too long: 140000, model maximum context length: 131071"), 131071},
		{inChat("The decoder prompt (length 5000) is longer than the maximum model length of 4096."), 4096},
		{inChat("The input (50000 tokens) is longer than the model's context length (40960 tokens)."), 40960},
		{`{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`, 8192},
		{inChat("invalid params, context window exceeds limit (2013)"), 0}, // the code of the error
		{inChat("Your input exceeds the context window of this model."), 0},
	} {
		for _, status := range []int{400, 200} {
			up, l := proxytest.New(t), newReports()
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if q.N > 1 {
					return proxytest.Answer{Text: "ok"}
				}
				return proxytest.Answer{Status: status, Body: c.said}
			}
			url, _ := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter(), Events: l}})
			a := newAgent(t, wire.Chat, url, false)
			a.large = true
			a.grow(0, 10)
			if s, err := a.try(); err != nil || s.status != 200 {
				t.Errorf("%d %s: status %d, %v", status, c.said, s.status, err)
			}
			a.ask()
			got := 0
			for _, e := range l.of(event.WindowLearned) {
				got = e.Details["window"].(int)
			}
			if got != c.want && (status == 400 || strings.Contains(c.said, `"error":{`)) {
				t.Errorf("%d %s: learned %d, want %d", status, c.said, got, c.want)
			}
		}
	}
}
