package llmtest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

var paths = map[string]string{wire.Anthropic: "/v1/messages", wire.Chat: "/v1/chat/completions", wire.Responses: "/v1/responses"}

// send posts a body as an SDK would and returns status and answer.
func send(t *testing.T, s *llmtest.Server, api, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+paths[api], strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer key")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func say(llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "Yes."} }

// TestProviderRefuses: what a provider does not take is refused in its own
// shape, told by Refused, and never answered.
func TestProviderRefuses(t *testing.T) {
	long := strings.Repeat("one two three ", 100)
	for _, test := range []struct {
		name, api, body string
		status          int
		kind            llm.Kind
	}{
		{"fits", wire.Anthropic, `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"Hi."}]}`, 200, ""},
		{"fits", wire.Chat, `{"model":"m","messages":[{"role":"user","content":"Hi."}]}`, 200, ""},
		{"fits", wire.Responses, `{"model":"m","input":[{"role":"user","content":"Hi."}]}`, 200, ""},
		{"no such model", wire.Anthropic, `{"model":"n","max_tokens":10,"messages":[{"role":"user","content":"Hi."}]}`, 404, llm.ErrNotFound},
		{"no messages", wire.Anthropic, `{"model":"m","max_tokens":10,"messages":[]}`, 400, llm.ErrInvalid},
		{"a result without its call", wire.Chat, `{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"x"}]}`, 400, llm.ErrInvalid},
		{"too long", wire.Anthropic, `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"` + long + `"}]}`, 400, llm.ErrOverflow},
		{"too long", wire.Chat, `{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`, 400, llm.ErrOverflow},
		{"too long", wire.Responses, `{"model":"m","input":[{"role":"user","content":"` + long + `"}]}`, 400, llm.ErrOverflow},
		{"no room for the answer", wire.Anthropic, `{"model":"m","max_tokens":95,"messages":[{"role":"user","content":"Hi."}]}`, 400, llm.ErrOverflow},
		{"an answer as long as the window", wire.Anthropic, `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Hi."}]}`, 400, llm.ErrOutput},
		{"no room for the answer", wire.Chat, `{"model":"m","max_completion_tokens":100,"messages":[{"role":"user","content":"Hi."}]}`, 400, llm.ErrOverflow},
		{"reasoning that was not stored", wire.Responses, `{"model":"m","store":false,"input":[{"role":"user","content":"Hi."},` +
			`{"type":"reasoning","id":"rs_9","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]},{"role":"user","content":"So?"}]}`, 404, llm.ErrNotFound},
	} {
		t.Run(test.name+"/"+test.api, func(t *testing.T) {
			s := llmtest.NewProvider(t, llmtest.Provider{Windows: map[string]int{"m": 100}, Reply: say})
			status, body := send(t, s, test.api, test.body)
			refused := s.Refused()
			if status != test.status || llm.Classify(test.api, status, []byte(body)) != test.kind || (len(refused) == 1) != (status != 200) {
				t.Fatalf("%d %s, %d refused", status, body, len(refused))
			}
			if status != 200 && (refused[0].Message == "" || refused[0].Status != status || refused[0].Request.Body != test.body) {
				t.Errorf("%+v", refused[0])
			}
			if status == 200 && !strings.Contains(body, "Yes.") {
				t.Error(body)
			}
		})
	}
}

// TestProviderNeedsKey: a request without credentials is refused.
func TestProviderNeedsKey(t *testing.T) {
	s := llmtest.NewProvider(t, llmtest.Provider{Windows: map[string]int{"m": 100}, Reply: say})
	for _, path := range paths {
		resp, err := http.Post(s.URL+path, "application/json", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

// TestProviderBindsThinking: a thinking block is taken where it was written, and
// nowhere else.
func TestProviderBindsThinking(t *testing.T) {
	s := llmtest.NewProvider(t, llmtest.Provider{Windows: map[string]int{"m": 10_000}, Reply: func(llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Reasoning: "I look.", Calls: []thread.ToolCall{{ID: "call_1", Name: "look", Arguments: "{}"}}}
	}})
	const form = `{"model":"m","max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"system":%q,` +
		`"tools":[{"name":"look","input_schema":{"type":"object"}%s}],"messages":[{"role":"user","content":%s}%s]}`
	status, body := send(t, s, wire.Anthropic, fmt.Sprintf(form, "Be brief.", "", `"Look."`, ""))
	var m struct{ Content json.RawMessage }
	if err := json.Unmarshal([]byte(body), &m); status != 200 || err != nil {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	rest := `,{"role":"assistant","content":` + string(m.Content) + `},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"a"}]}`
	for _, test := range []struct {
		name, body string
		status     int
	}{
		{"as it was", fmt.Sprintf(form, "Be brief.", "", `"Look."`, rest), 200},
		{"as a list, with a cache mark", fmt.Sprintf(form, "Be brief.", "", `[{"type":"text","text":"Look.","cache_control":{"type":"ephemeral"}}]`, rest), 200},
		{"another system", fmt.Sprintf(form, "Be long.", "", `"Look."`, rest), 400},
		{"other tools", fmt.Sprintf(form, "Be brief.", `,"description":"Looks."`, `"Look."`, rest), 400},
		{"other messages", fmt.Sprintf(form, "Be brief.", "", `"Look there."`, rest), 400},
		{"other thoughts", fmt.Sprintf(form, "Be brief.", "", `"Look."`, strings.Replace(rest, "I look.", "I jump.", 1)), 400},
	} {
		if status, body := send(t, s, wire.Anthropic, test.body); status != test.status {
			t.Errorf("%s: %d %s", test.name, status, body)
		}
	}
}

// TestProviderKnowsItsReasoning: what was given out encrypted is taken back, and
// nothing else is.
func TestProviderKnowsItsReasoning(t *testing.T) {
	s := llmtest.NewProvider(t, llmtest.Provider{Windows: map[string]int{"m": 10_000}, Reply: func(llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Reasoning: "I say it.", Text: "Yes."}
	}})
	const form = `{"model":"m","store":false,"include":["reasoning.encrypted_content"],"input":[{"role":"user","content":"Hi."}%s]}`
	status, body := send(t, s, wire.Responses, fmt.Sprintf(form, ""))
	var m struct {
		Output []json.RawMessage
		Usage  struct {
			Input int `json:"input_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(body), &m); status != 200 || err != nil || len(m.Output) != 2 || m.Usage.Input == 0 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	items := "," + string(m.Output[0]) + "," + string(m.Output[1]) + `,{"role":"user","content":"So?"}`
	if status, body := send(t, s, wire.Responses, fmt.Sprintf(form, items)); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	forged := strings.Replace(items, `"encrypted_content":"`, `"encrypted_content":"x`, 1)
	if status, body := send(t, s, wire.Responses, fmt.Sprintf(form, forged)); status != 400 || forged == items {
		t.Errorf("%d %s", status, body)
	}
}
