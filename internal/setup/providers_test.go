package setup_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

func TestEmbedder(t *testing.T) {
	env := map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
	o := &setup.Options{Getenv: func(name string) string { return env[name] }}
	if _, err := setup.Embedder("openai:text-embedding-3-small", o); err != nil {
		t.Error(err)
	}
	for use, want := range map[string]string{"openai": "want openai:MODEL", "openai:": "want openai:MODEL", "anthropic:x": "want openai:MODEL", "x:y": "want openai:MODEL"} {
		if _, err := setup.Embedder(use, o); !errors.Is(err, setup.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", use, err)
		}
	}
	clear(env)
	if _, err := setup.Embedder("openai:x", o); !errors.Is(err, setup.ErrUsage) || !strings.Contains(err.Error(), "set OPENAI_API_KEY") {
		t.Error(err)
	}
}

// TestMeasure: the provider of the prompt's own model is asked, where it counts and the
// environment says where it is.
func TestMeasure(t *testing.T) {
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		_, _ = io.WriteString(w, `{"input_tokens":7,"totalTokens":8}`)
	}))
	defer s.Close()
	env := map[string]string{}
	o := &setup.Options{Getenv: func(name string) string { return env[name] }, Retry: llm.Retry{Attempts: 1},
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	if _, err := setup.Measure(token.Models(), o); !errors.Is(err, setup.ErrUsage) || !strings.Contains(err.Error(), "set ANTHROPIC_API_KEY") || !strings.Contains(err.Error(), "set GEMINI_API_KEY") {
		t.Errorf("without a key: %v", err)
	}
	env["ANTHROPIC_BASE_URL"] = s.URL
	m, err := setup.Measure(token.Models(), o)
	if err != nil {
		t.Fatal(err)
	}
	p := &prompt.Prompt{Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Hello."}}}}}
	for _, tt := range []struct {
		model, base string
		want        int
		path        string // empty is an error, and nobody is asked
	}{
		{"claude-sonnet-4-5", "", 7, "/v1/messages/count_tokens"},
		{"claude-sonnet-4-5", "", 7, "/v1/messages/count_tokens"},
		{"gemini-2.5-pro", "", 0, ""},
		{"gemini-2.5-pro", s.URL, 8, "/v1beta/models/gemini-2.5-pro:countTokens"},
		{"gpt-5", s.URL, 0, ""},
		{"nobody-knows", s.URL, 0, ""},
	} {
		asked, env["GOOGLE_GEMINI_BASE_URL"], p.Model = "", tt.base, tt.model
		n, err := m.CountTokens(t.Context(), p)
		if n != tt.want || asked != tt.path || (err != nil) != (tt.path == "") {
			t.Errorf("%s: %d tokens of %q, %v", tt.model, n, asked, err)
		}
	}
}
