package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/anthropic"
	"github.com/palimpsest-ai/palimpsest/prompt"
	wire "github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestCountTokens: the counting endpoint is asked with what it takes and nothing
// else, and its figure comes back; what it refuses or garbles is an error. A13
func TestCountTokens(t *testing.T) {
	answer, status := `{"input_tokens": 2095}`, http.StatusOK
	var path string
	var body map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		raw, _ := io.ReadAll(r.Body)
		body = map[string]any{}
		if err := json.Unmarshal(raw, &body); err != nil || r.Header.Get("X-Api-Key") == "" || r.Header.Get("Anthropic-Version") == "" {
			t.Errorf("%v %s", err, raw)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	c := newClient(t, anthropic.Config{BaseURL: s.URL, Retry: llm.Retry{Attempts: 1}, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	p, err := wire.Codec{}.Decode(`{"model":"another","max_tokens":900,"temperature":1,"stream":true,"metadata":{"user_id":"u"},"system":"Be <brief>.",
		"thinking":{"type":"enabled","budget_tokens":600},"tools":[{"name":"Read","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Hello."}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.CountTokens(t.Context(), p); err != nil || n != 2095 {
		t.Fatalf("%d, %v", n, err)
	}
	want := map[string]any{
		"model": "test-model", "system": "Be <brief>.", "thinking": map[string]any{"type": "enabled", "budget_tokens": 600.0},
		"tools":    []any{map[string]any{"name": "Read", "input_schema": map[string]any{"type": "object"}}},
		"messages": []any{map[string]any{"role": "user", "content": "Hello."}},
	}
	if diff := cmp.Diff(want, body); diff != "" || path != "/v1/messages/count_tokens" {
		t.Errorf("%s is asked (-want +got):\n%s", path, diff)
	}
	if n, err := c.CountTokens(t.Context(), &prompt.Prompt{Messages: hello().Messages}); err != nil || n != 2095 || body["model"] != "test-model" {
		t.Errorf("a prompt of ours: %d, %v", n, err)
	}
	answer = `{"tokens": 1}`
	if _, err := c.CountTokens(t.Context(), p); !errors.Is(err, llm.ErrResponse) {
		t.Error(err)
	}
	answer, status = `{"type":"error","error":{"type":"not_found_error","message":"model"}}`, http.StatusNotFound
	if _, err := c.CountTokens(t.Context(), p); !errors.Is(err, llm.ErrNotFound) {
		t.Error(err)
	}
}
