package daemon_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// TestMCPReadSpendsNothing: an agent whose key may only read is shown what a compaction
// would do, and no model is asked for it.
func TestMCPReadSpendsNothing(t *testing.T) {
	provider, compactor := askingProvider(t, "NATS for the queue")
	keys := apikey.New(&apikeytest.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys, MCP: daemon.ReadMCP, Compactor: compactor})
	writer := key(t, keys, "a", apikey.Read|apikey.Write)
	h.talked(t, writer, "t", "NATS")
	preview := map[string]any{"session": "t", "budget": 2400}
	text, failed := called(t, h.agent(t, key(t, keys, "a", apikey.Read)), "compact", preview)
	if n := len(provider.Requests()); failed || !strings.Contains(text, "For a budget of 2,400") || n != 0 {
		t.Errorf("a model was asked %d times; failed is %t: %s", n, failed, text)
	}
	if text, failed := called(t, h.agent(t, writer), "compact", preview); failed || len(provider.Requests()) == 0 {
		t.Errorf("for who may spend no model was asked; failed is %t: %s", failed, text)
	}
}

// TestMCPCountsSystem: the budget of a compaction is that of the whole request, as the agent
// last sent it, with system and tools.
func TestMCPCountsSystem(t *testing.T) {
	h := start(t, daemon.Config{MCP: daemon.WriteMCP})
	h.talked(t, "", "t", "NATS")
	c := h.client(t, "")
	base := &neutral.Prompt{Model: "m", System: []neutral.System{{Text: strings.Repeat("Rules of the house. ", 400)}}}
	p, err := c.Prepare(t.Context(), "t", api.Any, api.Step{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	budget := p.Tokens * 2 / 3
	if text, failed := called(t, h.agent(t, ""), "compact", map[string]any{"session": "t", "budget": budget, "keep": true}); failed {
		t.Fatal(text)
	}
	made, err := c.Prepare(t.Context(), "t", api.Any, api.Step{Base: base})
	if err != nil || made.Tokens > budget {
		t.Errorf("for a budget of %d the request takes %d tokens, %v", budget, made.Tokens, err)
	}
}

// TestMCPLimits: what agents ask by the protocol counts among the requests of their tenant,
// and its bodies among those in memory.
func TestMCPLimits(t *testing.T) {
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	began, hold := make(chan struct{}), make(chan struct{})
	upstream := func(string) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Provider", "yes")
			began <- struct{}{}
			<-hold
		}), nil
	}
	memory := proxy.NewMemory(&proxy.MemoryOptions{Bodies: 1 << 20, TenantBodies: 64 << 10})
	h, a, _ := twoTenants(t, daemon.Config{Proxy: upstream, MCP: daemon.ReadMCP, Memory: memory, Limits: daemon.Limits{Requests: 1}})
	ask := func(body string) *http.Response {
		answer, _ := h.do(t, "POST", "/mcp", body, "Authorization", "Bearer "+a, "Accept", "application/json, text/event-stream")
		return answer
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.do(t, "POST", "/v1/messages", "{}", daemon.KeyHeader, a)
	}()
	<-began
	if answer := ask(list); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d", answer.StatusCode)
	}
	close(hold)
	<-ended
	for range 2 { // one after the other: none stays at work
		if answer := ask(list); answer.StatusCode != http.StatusOK {
			t.Errorf("afterwards: %d", answer.StatusCode)
		}
	}
	large := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"x":"` + strings.Repeat("much ", 40<<10) + `"}}}`
	if answer := ask(large); answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("too large for now: %d", answer.StatusCode)
	}
	if n := memory.Bodies(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}

// TestMCPBatchCounts: each message of a batch counts as a request, and a batch that could never
// be answered within the rate, or is longer than any may be, is refused as a whole.
func TestMCPBatchCounts(t *testing.T) {
	batch := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"tools/list"},`, n), ",") + "]"
	}
	for _, tt := range []struct {
		limits   daemon.Limits
		batches  []int
		statuses []int
	}{
		{daemon.Limits{Rate: 5, Burst: 5}, []int{6}, []int{400}},
		{daemon.Limits{Rate: 5, Burst: 5}, []int{3, 3}, []int{200, 429}},
		{daemon.Limits{Rate: 5, Burst: 5}, []int{1, 1, 1, 1, 1, 1}, []int{200, 200, 200, 200, 200, 429}},
		{daemon.Limits{Rate: 500, Burst: 500}, []int{20, 21}, []int{200, 400}},
		{daemon.Limits{Rate: 500, Burst: 500, TenantRate: 3}, []int{4, 4}, []int{200, 429}},
		{daemon.Limits{Rate: 500, Burst: 500, TenantRate: 3}, []int{7}, []int{400}},
		{daemon.Limits{Rate: 9, Burst: 9, TenantRate: 3}, []int{4, 5, 1}, []int{200, 429, 200}}, // what the tenant may not does not count for the key
	} {
		now := time.Now()
		h := start(t, daemon.Config{MCP: daemon.ReadMCP, Limits: tt.limits, Now: func() time.Time { return now }})
		for i, n := range tt.batches {
			answer, text := h.do(t, "POST", "/mcp", numberedCalls(batch(n)), "Accept", "application/json, text/event-stream")
			if answer.StatusCode != tt.statuses[i] {
				t.Errorf("%+v, batch %d of %v: %d, want %d: %.200s", tt.limits, i, tt.batches, answer.StatusCode, tt.statuses[i], text)
			}
		}
	}
}

// numberedCalls gives each call an id of its own.
func numberedCalls(batch string) string {
	for n := 2; strings.Contains(batch, `"id":1,`); n++ {
		batch = strings.Replace(batch, `"id":1,`, fmt.Sprintf(`"id":%d0,`, n), 1)
	}
	return batch
}

// TestTenantRate: all keys of a tenant together make so many requests a second, and those of
// another tenant do not count.
func TestTenantRate(t *testing.T) {
	now := time.Now()
	keys := apikey.New(&apikeytest.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys, Limits: daemon.Limits{TenantRate: 2}, Now: func() time.Time { return now }})
	one, two, other := key(t, keys, "a", apikey.Read), key(t, keys, "a", apikey.Read), key(t, keys, "b", apikey.Read)
	for i, token := range []string{one, two, one, two} {
		if answer := h.get(t, token, "/v1/threads"); answer.StatusCode != http.StatusOK {
			t.Errorf("request %d: %d", i, answer.StatusCode)
		}
	}
	for _, token := range []string{one, two} {
		if answer := h.get(t, token, "/v1/threads"); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "1" {
			t.Errorf("one too many: %d", answer.StatusCode)
		}
	}
	if answer := h.get(t, "wrong", "/v1/threads"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong key: %d", answer.StatusCode)
	}
	if answer := h.get(t, other, "/v1/threads"); answer.StatusCode != http.StatusOK {
		t.Errorf("another tenant: %d", answer.StatusCode)
	}
}
