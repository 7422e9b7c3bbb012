package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/openai"
	"github.com/palimpsest-ai/palimpsest/recall"
)

var _ recall.Embedder = (*openai.Embedder)(nil)

// TestEmbed: the texts are asked for at once, and come back in their order whatever the
// order of the answer; an answer that lacks one is an error.
func TestEmbed(t *testing.T) {
	answer := ""
	var asked struct {
		Model string
		Input []string
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(raw, &asked); err != nil || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s %v: %s, %v", r.URL.Path, r.Header, raw, err)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	e, err := openai.NewEmbedder(openai.Config{Model: "m", BaseURL: s.URL + "/v1", Key: "k", Retry: llm.Retry{Attempts: 1},
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		answer string
		want   []float32 // the first of each vector; nil is an error
	}{
		{`{"data":[{"index":1,"embedding":[2,0]},{"index":0,"embedding":[1,0.5]}]}`, []float32{1, 2}},
		{`{"data":[{"index":0,"embedding":[1]}]}`, nil},
		{`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, nil},
		{`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`, nil},
		{`{"data":[{"index":0,"embedding":[1]},{"index":-1,"embedding":[1]}]}`, nil},
		{`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, nil},
		{`{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`, nil},
		{`{"data":[{"index":0,"embedding":"x"},{"index":1,"embedding":[1]}]}`, nil},
		{`{"data":{}}`, nil},
		{`nothing`, nil},
	} {
		answer = tt.answer
		got, err := e.Embed(t.Context(), []string{"one", "two"})
		if tt.want == nil {
			if err == nil {
				t.Errorf("%s: no error but %v", tt.answer, got)
			}
			continue
		}
		if err != nil || len(got) != 2 || got[0][0] != tt.want[0] || got[1][0] != tt.want[1] {
			t.Errorf("%s: %v, %v", tt.answer, got, err)
		}
	}
	if asked.Model != "m" || !slices.Equal(asked.Input, []string{"one", "two"}) {
		t.Errorf("asked for %+v", asked)
	}
	if got, err := e.Embed(t.Context(), nil); err != nil || got != nil {
		t.Errorf("no text is %v, %v", got, err)
	}
	if _, err := openai.NewEmbedder(openai.Config{}); err == nil {
		t.Error("an embedder without a model is made")
	}
}
