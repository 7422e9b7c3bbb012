package proxy_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestRetryKnowsWindow: the window that a refusal names counts for the request that follows it, also
// for a client's request to summarize its history.
func TestRetryKnowsWindow(t *testing.T) {
	table, err := token.ParseModels([]byte(`{"models":[{"name":"test-model","provider":"x","counter":"o200k","window":200000,"date":"2026-01-01","source":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, api := range apis {
		for _, summary := range []bool{false, true} {
			up := strict(t)
			url, p := start(t, up, proxy.Options{Models: &table, Config: palimpsest.Config{Counter: counter()}})
			a := newAgent(t, api, url, false)
			a.grow(0, 60)
			if summary {
				a = a.summarising()
			}
			s, err := a.try()
			if err != nil || s.status != 200 || s.action() != proxy.Recovered || len(up.Requests()) != 2 || p.Totals().Faults != 0 {
				t.Errorf("%s, summary %t: status %d, %q after %d requests, %v", api, summary, s.status, s.action(), len(up.Requests()), err)
			}
		}
	}
}

// TestWindowOfACutAnswer: an answer that the end of the window cut off says how large that is, so that the next request is
// made smaller, whole and in a stream.
func TestWindowOfACutAnswer(t *testing.T) {
	const cut = `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"I have read"}],"stop_reason":"model_context_window_exceeded","stop_sequence":null,"usage":{"input_tokens":29800,"output_tokens":200}}`
	for _, stream := range []bool{false, true} {
		up := strict(t)
		up.Window = 0 // it takes all, and cuts answers off
		up.Model = func(*proxytest.Request) proxytest.Answer {
			switch {
			case len(up.Requests()) > 1:
				return proxytest.Answer{Text: "ok"}
			case stream:
				return proxytest.Answer{Stream: strings.Join(wiretest.Events(wire.Anthropic, cut, nil), "")}
			}
			return proxytest.Answer{Body: cut}
		}
		url, p := start(t, up, proxy.Options{Window: window * 3 / 2, Config: palimpsest.Config{Counter: counter()}})
		a := newAgent(t, wire.Anthropic, url, stream)
		a.grow(0, 24)
		a.ask()
		a.grow(24, 1)
		if s := a.ask(); s.status != 200 || s.action() != proxy.Compacted || p.Totals().Compactions != 1 {
			t.Errorf("stream %t: status %d, %q, %+v", stream, s.status, s.action(), p.Totals())
		}
	}
}

// TestBeforeTwoCompactions: the size before is that of what the client sent, also if a request was
// compacted, refused and compacted again.
func TestBeforeTwoCompactions(t *testing.T) {
	up := strict(t)
	up.Window = window / 2
	url, p := start(t, up, proxy.Options{Window: 2 * window, Config: palimpsest.Config{Counter: counter()}})
	a := newAgent(t, wire.Anthropic, url, false)
	a.grow(0, 60)
	s := a.peek()
	before, _ := strconv.Atoi(s.header.Get(proxy.BeforeHeader))
	if s.status != 200 || s.action() != proxy.Recovered || p.Totals().Compactions != 2 || before < 2*window {
		t.Errorf("status %d, %q, %d tokens before, %+v", s.status, s.action(), before, p.Totals())
	}
}
