package daemon_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// agent connects the SDK's own client with a key.
func (h *host) agent(t *testing.T, key string) *sdk.ClientSession {
	t.Helper()
	own := http.Client{Transport: keyed{h.http.Transport, key}}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: h.url + "/mcp", HTTPClient: &own, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

type keyed struct {
	next http.RoundTripper
	key  string
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if k.key != "" {
		r.Header.Set("Authorization", "Bearer "+k.key)
	}
	return k.next.RoundTrip(r)
}

// called calls a tool.
func called(t *testing.T, c *sdk.ClientSession, tool string, arguments map[string]any) (string, bool) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// talked makes a thread with some turns.
func (h *host) talked(t *testing.T, key, id, about string) {
	t.Helper()
	c := h.client(t, key)
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: id}); err != nil {
		t.Fatal(err)
	}
	say := func(role, text string) neutral.Message {
		return neutral.Message{Role: role, Parts: []neutral.Part{{Type: "text", Text: text}}}
	}
	var messages []neutral.Message
	for range 12 {
		messages = append(messages, say("user", "Tell me about "+about), say("assistant", strings.Repeat("We decided on "+about+" for the queue. ", 60)))
	}
	if _, err := c.Append(t.Context(), id, api.Any, api.Append{Messages: messages}); err != nil {
		t.Fatal(err)
	}
}

// TestMCP: an agent sees the threads of its key's tenant and no others, and keeps a
// plan where the daemon and the key both let it.
func TestMCP(t *testing.T) {
	keys := apikey.New(&apikeytest.Memory{}, nil)
	for _, mode := range []daemon.MCP{daemon.ReadMCP, daemon.WriteMCP} {
		h := start(t, daemon.Config{Keys: keys, MCP: mode, Version: "1.2.3"})
		mine, theirs, reader := key(t, keys, "mine", apikey.Read|apikey.Write), key(t, keys, "theirs", apikey.Read|apikey.Write), key(t, keys, "mine", apikey.Read)
		h.talked(t, mine, "ticket-4711", "NATS")
		h.talked(t, theirs, "secret-thread", "CANARY")
		for _, who := range []struct {
			key    string
			writes bool
		}{{mine, mode == daemon.WriteMCP}, {reader, false}} {
			c := h.agent(t, who.key)
			if v := c.InitializeResult().ServerInfo.Version; v != "1.2.3" {
				t.Errorf("version %s", v)
			}
			for _, q := range []struct {
				tool      string
				arguments map[string]any
				want      string
			}{
				{"sessions", nil, "ticket-4711 · thread"},
				{"recall", map[string]any{"query": "decided queue CANARY"}, "session ticket-4711 (thread, "},
				{"explain", map[string]any{"session": "ticket"}, "24 messages"},
				{"compact", map[string]any{"session": "ticket-4711", "budget": 2400}, ""},
				{"compact", map[string]any{"session": "ticket-4711", "budget": 250_000}, "fits as it is"},
			} {
				text, failed := called(t, c, q.tool, q.arguments)
				if failed || !strings.Contains(text, q.want) || strings.Contains(text, "CANARY for") || strings.Contains(text, "secret-thread") {
					t.Errorf("%s: failed is %t; %q is not in:\n%s", q.tool, failed, q.want, text)
				}
			}
			if text, failed := called(t, c, "explain", map[string]any{"session": "secret-thread"}); !failed {
				t.Errorf("a thread of another tenant: %s", text)
			}
			text, failed := called(t, c, "compact", map[string]any{"session": "ticket-4711", "budget": 2500, "keep": true})
			if failed == who.writes {
				t.Errorf("write is %t: failed is %t: %s", who.writes, failed, text)
			}
		}
		plans, err := h.client(t, mine).Plans(t.Context(), "ticket-4711", "", 0)
		if err != nil || (len(plans.Items) == 1) != (mode == daemon.WriteMCP) {
			t.Errorf("mode %d: %d plans, %v", mode, len(plans.Items), err)
		}
	}
}

// TestMCPRefuses: who may ask, from where and what is decided before the protocol is
// spoken.
func TestMCPRefuses(t *testing.T) {
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	keys := apikey.New(&apikeytest.Memory{}, nil)
	write := key(t, keys, "mine", apikey.Write)
	open, shut, off := start(t, daemon.Config{MCP: daemon.ReadMCP}), start(t, daemon.Config{MCP: daemon.ReadMCP, Keys: keys}), start(t, daemon.Config{})
	for name, tt := range map[string]struct {
		h            *host
		method, body string
		header       []string
		status       int
	}{
		"from here":         {open, "POST", list, nil, 200},
		"no key":            {shut, "POST", list, nil, 401},
		"wrong key":         {shut, "POST", list, []string{"Authorization", "Bearer plk_x"}, 401},
		"no right to read":  {shut, "POST", list, []string{"Authorization", "Bearer " + write}, 403},
		"another host":      {open, "POST", list, []string{"Host", "evil.example"}, 403},
		"another origin":    {open, "POST", list, []string{"Origin", "https://evil.example"}, 403},
		"a stream":          {open, "GET", "", nil, 405},
		"end of a session":  {open, "DELETE", "", nil, 405},
		"turned off":        {off, "POST", list, nil, 404},
		"too deep":          {open, "POST", strings.Repeat("[", 100_000), nil, 400},
		"deep arguments":    {open, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"query":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `}}}`, nil, 400},
		"too large":         {open, "POST", `{"x":"` + strings.Repeat("a", 2<<20) + `"}`, nil, 413},
		"no JSON":           {open, "POST", "hello", nil, 400},
		"two documents":     {open, "POST", list + list, nil, 400},
		"not even a method": {open, "POST", "", nil, 400},
	} {
		answer, body := tt.h.do(t, tt.method, "/mcp", tt.body, append([]string{"Accept", "application/json, text/event-stream"}, tt.header...)...)
		if answer.StatusCode != tt.status {
			t.Errorf("%s: %d %.200s, want %d", name, answer.StatusCode, body, tt.status)
		}
		if tt.status == 405 && !slices.Equal(answer.Header.Values("Allow"), []string{"POST"}) {
			t.Errorf("%s: Allow %v", name, answer.Header.Values("Allow"))
		}
	}
}
