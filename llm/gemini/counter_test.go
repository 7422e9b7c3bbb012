package gemini_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/gemini"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestCountTokens: models.countTokens is asked for the whole request, and its
// figure comes back; what it refuses or garbles is an error without the key. A13
func TestCountTokens(t *testing.T) {
	answer, status := `{"totalTokens": 31, "cachedContentTokenCount": 5}`, http.StatusOK
	var path string
	var body map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		raw, _ := io.ReadAll(r.Body)
		body = map[string]any{}
		if err := json.Unmarshal(raw, &body); err != nil || r.Header.Get("X-Goog-Api-Key") != "secret-key" {
			t.Errorf("%v %s", err, raw)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	config := gemini.Config{Model: "models/gemini-3-pro", BaseURL: s.URL + "/", Key: "secret-key", Retry: llm.Retry{Attempts: 1}}
	c, err := gemini.New(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &prompt.Prompt{
		Model: "another", MaxOutput: 900, System: []prompt.System{{Text: "Be brief."}},
		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Hello."}}}},
	}
	if n, err := c.CountTokens(t.Context(), p); err != nil || n != 31 {
		t.Fatalf("%d, %v", n, err)
	}
	text := func(s string) []any { return []any{map[string]any{"text": s}} }
	want := map[string]any{"generateContentRequest": map[string]any{
		"model":             "models/gemini-3-pro",
		"systemInstruction": map[string]any{"parts": text("Be brief.")},
		"contents":          []any{map[string]any{"role": "user", "parts": text("Hello.")}},
	}}
	if diff := cmp.Diff(want, body); diff != "" || path != "/v1beta/models/gemini-3-pro:countTokens" {
		t.Errorf("%s is asked (-want +got):\n%s", path, diff)
	}
	answer = `{}`
	if _, err := c.CountTokens(t.Context(), p); !errors.Is(err, llm.ErrResponse) {
		t.Error(err)
	}
	answer, status = `{"error":{"code":403,"message":"the key secret-key is wrong","status":"PERMISSION_DENIED"}}`, http.StatusForbidden
	if _, err := c.CountTokens(t.Context(), p); !errors.Is(err, llm.ErrAuth) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, config) + fmt.Sprintf(verb, c); strings.Contains(text, "secret") && verb != "%#v" && verb != "%+v" || strings.Contains(fmt.Sprintf(verb, config), "secret") {
			t.Errorf("%s shows %s", verb, text)
		}
	}
	for _, bad := range []gemini.Config{{}, {Model: "m", BaseURL: "no address"}} {
		if _, err := gemini.New(bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
