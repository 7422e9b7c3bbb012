package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// cutCalls are calls of an answer that was cut off: the last one in the middle of its
// arguments, where the API lets that be seen.
func cutCalls(api string) []thread.ToolCall {
	last := `{"path":"b.go"`
	if api == wire.Anthropic || api == wire.Gemini {
		last += "}" // a stream of Anthropic's leaves out the end; Gemini sends whole calls alone
	}
	return []thread.ToolCall{{ID: "call_whole", Name: "run", Arguments: `{"path":"a.go"}`}, {ID: "call_cut", Name: "read_file", Arguments: last}}
}

// lengthStops are the APIs' words for an answer that ended at the limit on the output.
var lengthStops = map[string]string{wire.Anthropic: "max_tokens", wire.Chat: "length", wire.Responses: "incomplete", wire.Gemini: "MAX_TOKENS"}

// TestCutOff: under loop an answer that ended for length is gone on with in a further
// request where a compaction is due with it: without the calls in it, which were not
// run, and the client sees one answer, whose next request goes on in the same log.
// Where none is due, and under any other policy, the answer reaches the client as it
// came. E2
func TestCutOff(t *testing.T) {
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			for _, calls := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, stream %t, calls %t", api, stream, calls), func(t *testing.T) {
					t.Parallel()
					cutOff(t, api, stream, calls)
				})
			}
		}
	}
}

// TestOwnRecall: a client's own tool by the name of one of ours is called as ever, also under a policy
// that goes on with answers which were cut off.
func TestOwnRecall(t *testing.T) {
	for _, p := range []policy.Policy{policy.Loop{ContextLimit: 200_000, MaxOutput: 1}, policy.Auto{}} {
		for _, stream := range []bool{false, true} {
			up := proxytest.New(t)
			up.Model = func(*proxytest.Request) proxytest.Answer {
				return proxytest.Answer{Calls: []thread.ToolCall{{ID: "call_own", Name: "recall", Arguments: `{"path":"a.go"}`}}}
			}
			url, proxied := start(t, up, proxy.Options{Window: 200_000, Config: palimpsest.Config{Counter: counter(), Policy: p}})
			a := newAgent(t, wire.Anthropic, url, stream)
			a.tools = append(a.tools, "recall")
			a.grow(0, 12)
			if s := a.ask(); len(s.calls) != 1 || s.calls[0].ID != "call_own" || len(up.Requests()) != 1 || proxied.Totals().Faults != 0 {
				t.Errorf("%s, stream %t: the client has the calls %v after %d requests", p.Name(), stream, s.calls, len(up.Requests()))
			}
		}
	}
}

func cutOff(t *testing.T, api string, stream, calls bool) {
	const mark = "was cut off there"
	long := "First I write down what I found. " + strings.Repeat("The shelf is full of orders. ", 1200)
	for name, p := range map[string]policy.Policy{"due": policy.Loop{ContextLimit: 16_000, MaxOutput: 1}, "not due": policy.Loop{ContextLimit: 200_000, MaxOutput: 1}, "another policy": policy.Auto{}} {
		up := proxytest.New(t)
		up.Model = func(q *proxytest.Request) proxytest.Answer {
			switch {
			case q.N > 2:
				return proxytest.Answer{Text: "ok"}
			case q.N == 2 && name == "due":
				return proxytest.Answer{Text: "And that is the rest.", Calls: []thread.ToolCall{{ID: "call_next", Name: "run", Arguments: `{"path":"c.go"}`}}}
			}
			a := proxytest.Answer{Text: long, Cut: true}
			if calls {
				a.Calls = cutCalls(api)
			}
			return a
		}
		url, served := start(t, up, proxy.Options{Window: 16_000, Config: palimpsest.Config{Counter: counter(), Policy: p}})
		a := newAgent(t, api, url, stream)
		a.grow(0, 4)
		s := a.ask()
		requests := up.Requests()
		if name != "due" {
			raw, called := string(s.raw), "call_whole"
			if api == wire.Gemini {
				called = "functionCall"
			}
			if len(requests) != 1 || !strings.Contains(raw, `"`+lengthStops[api]+`"`) || strings.Contains(raw, called) != calls || strings.Contains(raw, "the rest") {
				t.Errorf("%s: %d requests, %s", name, len(requests), raw[max(0, len(raw)-900):])
			}
			continue
		}
		if len(requests) != 2 || served.Totals().Compactions != 1 || served.Totals().Faults != 0 {
			t.Fatalf("%d requests, %+v", len(requests), served.Totals())
		}
		body := string(requests[1].Body)
		if !strings.Contains(body, mark) || !strings.Contains(body, "COMPACT SUMMARY") || strings.Contains(body, "call_cut") && stream && api != wire.Gemini || calls && api != wire.Gemini && !strings.Contains(body, "call_whole") {
			t.Errorf("the second request: %.600s … %.900s", body, body[max(0, len(body)-900):])
		}
		if calls != strings.Contains(body, "Not run") {
			t.Errorf("calls %v, and the second request: %s", calls, body[max(0, len(body)-900):])
		}
		text := strings.Join(strings.Fields(s.text), " ")
		if want := strings.Join(strings.Fields(long), " "); !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "And that is the rest.") {
			t.Errorf("the client reads %.60q … %q", text, text[max(0, len(text)-200):])
		}
		if len(s.calls) != 1 || s.calls[0].Arguments != `{"path":"c.go"}` || s.stop == lengthStops[api] {
			t.Errorf("stopped for %q with %+v", s.stop, s.calls)
		}
		a.results(s.calls, func(thread.ToolCall) string { return "done" })
		next := a.ask()
		if got, want := next.header.Get(proxy.ThreadHeader), s.header.Get(proxy.ThreadHeader); got != want || next.text != "ok" {
			t.Errorf("the next request is of %s, not of %s: %q", got, want, next.text)
		}
	}
}
