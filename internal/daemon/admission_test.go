package daemon_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// twoTenants starts a daemon with a key of each of two tenants.
func twoTenants(t *testing.T, c daemon.Config) (h *host, a, b string) {
	t.Helper()
	keys := apikey.New(&apikeytest.Memory{}, nil)
	c.Keys = keys
	h = start(t, c)
	a, b = key(t, keys, "a", apikey.Read|apikey.Write), key(t, keys, "b", apikey.Read|apikey.Write)
	for _, token := range []string{a, b} {
		if _, err := h.client(t, token).CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	return h, a, b
}

// TestTenantRequests: a tenant with as many requests at work as it may have gets 429
// for more, another one is answered meanwhile, and when they have ended so is the first.
func TestTenantRequests(t *testing.T) {
	const most = 3
	began, hold := make(chan struct{}), make(chan struct{})
	upstream := func(tenant string) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Provider", "yes")
			if tenant == "a" {
				began <- struct{}{}
				<-hold
			}
		}), nil
	}
	h, a, b := twoTenants(t, daemon.Config{Proxy: upstream, Limits: daemon.Limits{Requests: most}})
	ended := make(chan int, most)
	for range most {
		go func() {
			answer, _ := h.do(t, "POST", "/v1/messages", "{}", daemon.KeyHeader, a)
			ended <- answer.StatusCode
		}()
		<-began
	}
	for range 2 {
		if answer := h.get(t, a, "/v1/threads"); answer.StatusCode != 429 || answer.Header.Get("Retry-After") == "" {
			t.Errorf("one too many: %d %v", answer.StatusCode, answer.Header)
		}
		if answer, _ := h.do(t, "POST", "/v1/messages", "{}", daemon.KeyHeader, a); answer.StatusCode != 429 {
			t.Errorf("one of an agent too many: %d", answer.StatusCode)
		}
	}
	for range 2 * most { // one after the other: none stays at work
		if answer := h.get(t, b, "/v1/threads"); answer.StatusCode != 200 {
			t.Errorf("another tenant: %d", answer.StatusCode)
		}
	}
	if n := h.metric(t, b, `palimpsest_refused_total{limit="requests"}`); n != "4" {
		t.Errorf("%s were refused", n)
	}
	close(hold)
	for range most {
		if status := <-ended; status != 200 {
			t.Error(status)
		}
	}
	if answer := h.get(t, a, "/v1/threads"); answer.StatusCode != 200 {
		t.Errorf("afterwards: %d", answer.StatusCode)
	}
}

// TestTenantBodies: while the bodies of a tenant take all the room that it may have,
// its large requests are refused, its small ones and those of another are answered.
func TestTenantBodies(t *testing.T) {
	memory := proxy.NewMemory(&proxy.MemoryOptions{Bodies: 1 << 20, TenantBodies: 500 << 10})
	h, a, b := twoTenants(t, daemon.Config{Memory: memory})
	body := func(size int) string {
		return fmt.Sprintf(`{"messages":[{"role":"user","parts":[{"type":"text","text":"%s"}]}]}`, strings.Repeat("much ", size/5))
	}
	large := body(400 << 10)
	r, w := io.Pipe()
	slow, err := http.NewRequestWithContext(t.Context(), "POST", h.url+"/v1/threads/t/messages", r)
	if err != nil {
		t.Fatal(err)
	}
	slow.Header.Set("Authorization", "Bearer "+a)
	slow.Header.Set("Content-Type", "application/json")
	status := make(chan int, 1)
	go func() {
		answer, err := h.http.Do(slow)
		if err != nil {
			status <- 0
			return
		}
		answer.Body.Close()
		status <- answer.StatusCode
	}()
	if _, err := io.WriteString(w, large[:len(large)-1]); err != nil {
		t.Fatal(err)
	}
	const free = 32 << 10                     // of a body is not counted
	for memory.Bodies() < len(large)-1-free { // the server reads what is on its way, all of it
		h.get(t, a, "/healthz")
	}
	send := func(token, text string) *http.Response {
		answer, _ := h.do(t, "POST", "/v1/threads/t/messages", text, "Authorization", "Bearer "+token)
		return answer
	}
	if answer := send(a, large); answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" {
		t.Errorf("too large for now: %d %v", answer.StatusCode, answer.Header)
	}
	if answer := send(a, body(1000)); answer.StatusCode != 200 {
		t.Errorf("a small one: %d", answer.StatusCode)
	}
	if answer := send(b, large); answer.StatusCode != 200 {
		t.Errorf("another tenant: %d", answer.StatusCode)
	}
	if _, err := io.WriteString(w, large[len(large)-1:]); err != nil {
		t.Error(err)
	}
	w.Close()
	if got := <-status; got != 200 {
		t.Errorf("the slow one: %d", got)
	}
	if answer := send(a, large); answer.StatusCode != 200 {
		t.Errorf("afterwards: %d", answer.StatusCode)
	}
	if n := h.metric(t, b, `palimpsest_refused_total{limit="bodies"}`); n != "1" {
		t.Errorf("%s were refused", n)
	}
	if n := memory.Bodies(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}

// TestMemoryLimit: a process that has all the memory it may have refuses work with 503
// and Retry-After, and still says how it is.
func TestMemoryLimit(t *testing.T) {
	upstream := func(string) (http.Handler, error) { return http.NotFoundHandler(), nil }
	h := start(t, daemon.Config{Limits: daemon.Limits{Memory: 1}, Proxy: upstream, MCP: daemon.ReadMCP})
	if answer, body := h.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" {
		t.Errorf("/mcp: %d %.200s", answer.StatusCode, body)
	}
	for path, want := range map[string]int{"/v1/threads": 503, "/v1/threads/t": 503, "/v1/models": 503, "/healthz": 200, "/readyz": 200} {
		answer, body := h.do(t, "GET", path, "")
		if answer.StatusCode != want || (want == 503) != (answer.Header.Get("Retry-After") != "") {
			t.Errorf("%s: %d %v %.200s", path, answer.StatusCode, answer.Header, body)
		}
	}
}
