package proxy_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/token"
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
