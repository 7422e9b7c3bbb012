package proxy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// TestPaths: what the providers' SDKs and the agents ask for goes on, to the provider
// that has it; everything else is answered here and goes nowhere.
func TestPaths(t *testing.T) {
	ups := map[string]*proxytest.Upstream{"anthropic": proxytest.New(t), "openai": proxytest.New(t), "gemini": proxytest.New(t)}
	p, err := proxy.New(&proxy.Options{Anthropic: ups["anthropic"].URL, OpenAI: ups["openai"].URL + "/v1", Gemini: ups["gemini"].URL})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	url := server.URL
	for _, c := range []struct {
		method, path, header string
		want                 string // a provider, or a status
	}{
		{"POST", "/v1/messages?beta=true", "", "anthropic"},
		{"POST", "/messages", "", "anthropic"},
		{"POST", "//v1/messages", "", "anthropic"},
		{"POST", "/gateway/eu/v1/messages", "", "anthropic"},
		{"POST", "/v1/messages/count_tokens", "", "anthropic"},
		{"GET", "/v1/messages/batches?limit=3", "", "anthropic"},
		{"DELETE", "/v1/messages/batches/b_1", "", "anthropic"},
		{"POST", "/v1/messages/batches/b_1/cancel", "", "anthropic"},
		{"GET", "/v1/messages/batches/b_1/results", "", "anthropic"},
		{"POST", "/v1/complete", "", "anthropic"},
		{"GET", "/v1/models", "anthropic-version", "anthropic"},
		{"GET", "/v1/models/claude-sonnet-4-5", "x-api-key", "anthropic"},
		{"POST", "/v1/files", "anthropic-version", "anthropic"},
		{"GET", "/v1/files/f_1/content", "anthropic-version", "anthropic"},
		{"POST", "/v1/skills/s_1/versions", "anthropic-version", "anthropic"},
		{"GET", "/v1/organizations/usage_report/messages", "x-api-key", "anthropic"},
		{"POST", "/api/event_logging/batch", "", "anthropic"},
		{"POST", "/api/event_logging/v2/batch", "", "anthropic"},
		{"GET", "/api/claude_code/settings", "", "anthropic"},
		{"GET", "/api/oauth/usage", "", "anthropic"},
		{"HEAD", "/api/hello", "", "anthropic"},

		{"POST", "/v1/chat/completions", "", "openai"},
		{"POST", "/chat/completions", "", "openai"},
		{"POST", "/openrouter/api/v1/chat/completions", "", "openai"},
		{"POST", "/openai/deployments/gpt/chat/completions?api-version=1", "", "openai"},
		{"POST", "/openai/deployments/gpt/embeddings", "", "openai"},
		{"GET", "/openai/models", "", "openai"},
		{"GET", "/v1/chat/completions", "", "openai"},
		{"GET", "/v1/chat/completions/c_1/messages", "", "openai"},
		{"POST", "/v1/responses", "", "openai"},
		{"POST", "/v1/responses/compact", "", "openai"},
		{"POST", "/v1/responses/input_tokens", "", "openai"},
		{"GET", "/v1/responses/r_1?stream=true", "", "openai"},
		{"GET", "/v1/responses/r_1/input_items", "", "openai"},
		{"POST", "/v1/responses/r_1/cancel", "", "openai"},
		{"DELETE", "/v1/responses/r_1", "", "openai"},
		{"POST", "/v1/conversations", "", "openai"},
		{"GET", "/v1/conversations/c_1/items", "", "openai"},
		{"POST", "/v1/completions", "", "openai"},
		{"POST", "/v1/embeddings", "", "openai"},
		{"POST", "/v1/embeddings", "x-api-key", "openai"},
		{"GET", "/v1/models", "", "openai"},
		{"GET", "/models?client_version=0.99.0", "", "openai"},
		{"DELETE", "/v1/models/ft:gpt-x", "", "openai"},
		{"POST", "/v1/files", "", "openai"},
		{"POST", "/v1/uploads/u_1/parts", "", "openai"},
		{"POST", "/v1/audio/transcriptions", "", "openai"},
		{"POST", "/v1/images/generations", "", "openai"},
		{"POST", "/v1/moderations", "", "openai"},
		{"POST", "/v1/batches", "", "openai"},
		{"POST", "/v1/vector_stores/v_1/search", "", "openai"},
		{"POST", "/v1/realtime/client_secrets", "", "openai"},
		{"POST", "/v1/fine_tuning/jobs", "", "openai"},
		{"POST", "/v1/memories/trace_summarize", "", "openai"},
		{"POST", "/v1/alpha/search", "", "openai"},
		{"POST", "/v1/alpha/history/v2/list_items", "", "openai"},
		{"POST", "/v1/alpha/notes/v2/thread_hint", "", "openai"},
		{"OPTIONS", "/v1/embeddings", "", "openai"},
		{"HEAD", "/v1/models", "", "openai"},

		{"POST", "/v1beta/models/gemini-x:generateContent", "", "gemini"},
		{"POST", "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", "", "gemini"},
		{"POST", "/v1beta/models/gemini-x:embedContent", "", "gemini"},
		{"POST", "/v1beta/models/gemini-x:batchGenerateContent", "", "gemini"},
		{"POST", "/v1/projects/p/locations/l/publishers/google/models/gemini-x:generateContent", "", "gemini"},
		{"POST", "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict", "", "gemini"},
		{"GET", "/v1beta/models", "", "gemini"},
		{"GET", "/v1beta/files/f_1", "", "gemini"},
		{"POST", "/upload/v1beta/files", "", "gemini"},
		{"PATCH", "/v1beta/cachedContents/c_1", "", "gemini"},
		{"GET", "/v1beta/operations/o_1", "", "gemini"},
		{"GET", "/v1beta/batches/b_1", "", "gemini"},
		{"POST", "/v1beta/interactions", "", "gemini"},
		{"POST", "/v1internal:streamGenerateContent?alt=sse", "", "gemini"},
		{"POST", "/v1internal:loadCodeAssist", "", "gemini"},

		{"GET", "/", "", "404"},
		{"HEAD", "/", "", "404"},
		{"GET", "/ui", "", "404"},
		{"GET", "/ui/threads", "", "404"},
		{"GET", "/favicon.ico", "", "404"},
		{"GET", "/robots.txt", "", "404"},
		{"GET", "/sessions", "", "404"},
		{"GET", "/v1", "", "404"},
		{"GET", "/v1/", "", "404"},
		{"POST", "/v1/nothing", "", "404"},
		{"POST", "/v1/mesages", "", "404"},
		{"POST", "/v1/messages/nothing", "", "404"},
		{"GET", "/api/nothing", "", "404"},
		{"OPTIONS", "/nothing", "", "404"},
		{"GET", "/v1/models/../nothing", "", "404"},
		{"GET", "/v1/messages", "", "405 POST"},
		{"DELETE", "/gateway/v1/messages", "", "405 POST"},
		{"PUT", "/v1/chat/completions", "", "405 GET, POST"},
		{"GET", "/gateway/chat/completions", "", "405 POST"},
		{"GET", "/v1/responses", "", "405 POST"},
		{"GET", "/v1/embeddings", "", "405 POST"},
		{"GET", "/v1beta/models/gemini-x:generateContent", "", "405 POST"},
		{"PUT", "/v1/models", "", "405 GET"},
	} {
		t.Run(c.method+" "+c.path+" "+c.header, func(t *testing.T) {
			for _, up := range ups {
				up.Forget()
			}
			r, err := http.NewRequest(c.method, url+c.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if c.header != "" {
				r.Header.Set(c.header, "x")
			}
			res, err := plainly.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			got := ""
			for name, up := range ups {
				if len(up.Requests()) > 0 {
					got += name
				}
			}
			if got == "" {
				got = strings.TrimSpace(strings.Fields(res.Status)[0] + " " + res.Header.Get("Allow"))
				var refusal struct {
					Error struct{ Message, Type string }
				}
				if err := json.Unmarshal(body, &refusal); c.method != "HEAD" && (err != nil || !strings.HasPrefix(refusal.Error.Message, "palimpsest: ") || refusal.Error.Type == "") {
					t.Errorf("the answer says %q (%v)", body, err)
				}
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestCodexNotes: what Codex asks its own store of notes and history passes as it is, in both
// directions: the texts in it are sealed by the provider.
func TestCodexNotes(t *testing.T) {
	const said = `{"path":"checkpoint.md","text":"gAAAAA-sealed","context":{"session_id":"s-1","current_agent_name":"/root"}}`
	up := proxytest.New(t)
	p, err := proxy.New(&proxy.Options{OpenAI: up.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	r, err := http.NewRequest("POST", server.URL+"/v1/alpha/notes/v2/write_file", strings.NewReader(said))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Openai-Encrypted-Tool-Arguments", "true")
	res, err := plainly.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(res.Body)
	res.Body.Close()
	got := up.Requests()
	if len(got) != 1 || string(got[0].Body) != said || got[0].Path != "/v1/alpha/notes/v2/write_file" || got[0].Header.Get("X-Openai-Encrypted-Tool-Arguments") != "true" {
		t.Fatalf("the provider got %+v", got)
	}
	if !strings.Contains(string(answer), `"object":"echo"`) {
		t.Errorf("the client got %s", answer)
	}
}
