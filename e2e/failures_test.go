package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// unsteady is a provider that fails now and then.
type unsteady struct {
	every int // so many requests of the worker, and one of them fails
	mu    sync.Mutex
	asked map[string]int // requests, by model
	given map[string]int // failures, by kind
	most  int            // tokens that are taken at the moment; 0 is no limit
}

// reply fails each of those requests of the worker in another way, and every
// third of the summarizer; all others are answered as usual. Three times it holds
// a request for too long that fits by any count of ours, until a smaller one
// comes.
func (u *unsteady) reply(r llmtest.Request) llmtest.Answer {
	u.mu.Lock()
	defer u.mu.Unlock()
	name := r.Prompt.Model
	u.asked[name]++
	n := u.asked[name]
	if name == "summarizer" {
		if n%3 != 2 {
			return summarizer(r)
		}
		return u.fail("summarizer", llmtest.Fault(r.API, http.StatusInternalServerError, "", "Internal server error"), "X-Should-Retry", "false")
	}
	if u.most > 0 && r.Tokens > u.most {
		return u.fail("overflow again", u.overflow(r))
	}
	u.most = 0
	if n == 30 || n == 61 || n == 90 {
		u.most = r.Tokens * 9 / 10
		return u.fail("overflow", u.overflow(r))
	}
	if n%u.every != 0 {
		return worker(r)
	}
	switch n / u.every % 4 {
	case 0:
		return u.fail("429", llmtest.Fault(r.API, http.StatusTooManyRequests, "rate_limit_exceeded", "This request would exceed your rate limit."), "Retry-After-Ms", "1")
	case 1:
		return u.fail("500", llmtest.Fault(r.API, http.StatusInternalServerError, "", "Internal server error"), "Retry-After-Ms", "1")
	case 2:
		status := http.StatusServiceUnavailable
		if r.API == wire.Anthropic {
			status = 529
		}
		return u.fail("overloaded", llmtest.Fault(r.API, status, "", "Overloaded"), "Retry-After-Ms", "1")
	}
	a := worker(r)
	a.Abort, a.Events = true, 3
	return u.fail("cut off", a)
}

// overflow is the refusal of one that counts more than we do.
func (u *unsteady) overflow(r llmtest.Request) llmtest.Answer {
	return llmtest.Overflow(r.API, window*r.Tokens/u.most+1, window)
}

func (u *unsteady) fail(kind string, a llmtest.Answer, header ...string) llmtest.Answer {
	u.given[kind]++
	if len(header) > 0 {
		a.Header = http.Header{header[0]: {header[1]}}
	}
	return a
}

// TestUnsteadyProvider: the task is finished under every policy although the
// provider fails in every way now and then, and although it refuses requests as
// too long that were thought to fit.
func TestUnsteadyProvider(t *testing.T) {
	for i, c := range cases {
		for _, api := range []string{apis[i%len(apis)], apis[(i+1)%len(apis)]} {
			t.Run(c.name+"/"+api, func(t *testing.T) {
				t.Parallel()
				u := &unsteady{every: 7, asked: map[string]int{}, given: map[string]int{}}
				server := llmtest.NewProvider(t, llmtest.Provider{Windows: windows, Reply: u.reply})
				generator := newSummarizer(t, api, server.URL)
				a := work(t, palimpsest.Config{Policy: c.policy(generator), Summarizer: model.New(nil, generator)}, server, api, true)
				for _, kind := range []string{"429", "500", "overloaded", "cut off", "overflow", "summarizer"} {
					if asks := kind != "summarizer" || c.name != "notes"; asks != (u.given[kind] > 0) { // notes asks no model
						t.Errorf("the provider failed by %q: %t, want %t: %v", kind, !asks, asks, u.given)
					}
				}
				if a.refused < u.given["overflow"] || a.again < u.given["cut off"] {
					t.Errorf("the agent saw %d requests refused and %d cut off of %v", a.refused, a.again, u.given)
				}
				// Where a summary failed the request may have been too long in truth.
				for _, r := range server.Refused() {
					if !llm.IsOverflow(llm.Classify(api, r.Status, []byte(`{"error":{"message":"`+strings.ReplaceAll(r.Message, `"`, "")+`"}}`))) {
						t.Errorf("a request of %d tokens was refused: %d %s", r.Request.Tokens, r.Status, r.Message)
					}
				}
			})
		}
	}
}
