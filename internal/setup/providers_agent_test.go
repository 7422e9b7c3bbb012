package setup

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy"
)

// asAgent is a provider that keeps what it is asked, and answers summaries with what an
// agent's model would write.
type asAgent struct {
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
}

func (a *asAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.bodies, a.heads = append(a.bodies, string(body)), append(a.heads, r.Header.Clone())
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	content := `[{"type":"text","text":"Of file 3 the queue keeps orders."}]`
	stop := "end_turn"
	switch {
	case gjson.Get(string(body), "tool_choice.name").Str != "":
		name := gjson.Get(string(body), "tool_choice.name").Str
		content = fmt.Sprintf(`[{"type":"tool_use","id":"toolu_1","name":%q,"input":{"summary":{"key_facts":["Of file 3 the queue keeps orders."],"conversation_flow":[],"open_threads":[]},"state_delta":{},"facts":[{"text":"Of file 3 the queue keeps orders.","sources":[1,2,3,4,5,6,7,8,9]}]}}]`, name)
		stop = "tool_use"
	case strings.Contains(string(body), "failed_attempts"):
		content = `[{"type":"text","text":"{\"facts\":[{\"text\":\"Of file 3 the queue keeps orders.\",\"sources\":[1,2,3,4,5,6,7,8,9]}]}"}]`
	}
	fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":%s,"stop_reason":%q,"usage":{"input_tokens":900,"output_tokens":20}}`, content, stop)
}

// TestAgentWritesSummaries: with the summarizer "agent" the agent's own model is asked
// with the agent's own credentials, at the address of its own request, without anything
// that the environment says; under auto the request goes on from what the provider has
// cached of it. B, E
func TestAgentWritesSummaries(t *testing.T) {
	for _, policy := range []string{"auto", "session", "timeline", "workstream", "loop"} {
		t.Run(policy, func(t *testing.T) {
			provider := &asAgent{}
			up := httptest.NewServer(provider)
			defer up.Close()
			chosen, err := Open(policy, &Options{Summarizer: "agent", AllowAgent: true, Getenv: env(nil)})
			if err != nil {
				t.Fatal(err)
			}
			config := chosen.Config(mustCounter(t))
			p, err := proxy.New(&proxy.Options{Anthropic: up.URL, Config: config, Window: 40_000, Agent: AgentModel})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(p)
			defer server.Close()
			const secret = "Bearer sk-ant-oat01-secret-of-the-agent"
			var history []string
			for n := 0; n < 60 && len(provider.bodies) == n; n++ {
				history = append(history, fmt.Sprintf(`{"role":"user","content":"Please tidy file %d of the queue."}`, n))
				body := `{"model":"claude-sonnet-4-5","max_tokens":1000,"system":[{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}}],"messages":[` + strings.Join(history, ",") + `]}`
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/messages?beta=true", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", secret)
				r.Header.Set("Anthropic-Version", "2023-06-01")
				r.Header.Set("Anthropic-Beta", "oauth-2025-04-20")
				res, err := http.DefaultClient.Do(r)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Fatal(res, err)
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				history = append(history, fmt.Sprintf(`{"role":"assistant","content":"%s"}`, fmt.Sprintf("The queue keeps orders in file %d. ", n)+strings.Repeat(fmt.Sprintf("Filler %d of the text. ", n), 250)))
				if len(provider.bodies) > n+1 {
					break
				}
			}
			if len(provider.bodies) < 3 {
				t.Fatal("the agent's model was not asked for a summary")
			}
			last := len(provider.bodies) - 1
			asked, head := provider.bodies[last-1], provider.heads[last-1]
			if head.Get("Authorization") != secret || head.Get("X-Api-Key") != "" || head.Get("Anthropic-Beta") != "oauth-2025-04-20" || gjson.Get(asked, "model").Str != "claude-sonnet-4-5" {
				t.Errorf("asked with %v: %.200s", head, asked)
			}
			if sent := provider.bodies[last]; !strings.Contains(sent, "Of file 3 the queue keeps orders.") || strings.Count(sent, "Filler 3 of the text.") > 2 {
				t.Errorf("%d requests; the summary does not stand in the prompt: %.600s", len(provider.bodies), sent)
			}
			if policy == "auto" {
				at := slices.IndexFunc(provider.bodies, func(body string) bool { return strings.Contains(body, "about to be shortened") })
				if at < 1 {
					t.Fatal("no request goes on from the agent's own")
				}
				first := at - 1
				if strings.Contains(provider.bodies[first], "which sentences still stand") {
					first-- // asked before the summary
				}
				before := gjson.Get(provider.bodies[first], "messages").Array()
				for i, m := range gjson.Get(provider.bodies[at], "messages").Array()[:len(before)] {
					if m.Raw != before[i].Raw {
						t.Fatalf("message %d of the request for a summary is %.200s, the agent's was %.200s", i, m.Raw, before[i].Raw)
					}
				}
			}
		})
	}
	if _, err := Open("auto", &Options{Summarizer: "agent", Getenv: env(nil)}); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "palimpsest run") {
		t.Errorf("without an agent: %v", err)
	}
}
