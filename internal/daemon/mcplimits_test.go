package daemon_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/apikey"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// TestMCPReadSpendsNothing: an agent whose key may only read is shown what a compaction
// would do, and no model is asked for it.
func TestMCPReadSpendsNothing(t *testing.T) {
	provider, compactor := askingProvider(t, "NATS for the queue")
	keys := apikey.New(&apikey.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys, MCP: daemon.ReadMCP, Compactor: compactor})
	writer := key(t, keys, "a", apikey.Read|apikey.Write)
	h.talked(t, writer, "t", "NATS")
	preview := map[string]any{"session": "t", "budget": 2400}
	text, failed := called(t, h.agent(t, key(t, keys, "a", apikey.Read)), "compact", preview)
	if n := len(provider.Requests()); failed || !strings.Contains(text, "For a budget of 2400") || n != 0 {
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
