package model_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm/anthropic"
	"github.com/palimpsest-ai/palimpsest/llm/openai"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Over real connections and both APIs, whose strict validators see the request:
// a first provider that is down, a second one that answers.
func TestOverHTTP(t *testing.T) {
	down := llmtest.NewServer(t, llmtest.Answer{Status: http.StatusUnauthorized, Body: `{"error":{"type":"authentication_error","message":"no"}}`})
	up := llmtest.NewServer(t, llmtest.Answer{Text: honest, Usage: wire.Usage{Input: 900, Output: 200, Known: true}})
	first, err := anthropic.New(anthropic.Config{Model: "claude-x", BaseURL: down.URL, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := openai.New(openai.Config{Model: "gpt-x", BaseURL: up.URL + "/v1", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	f := model.New(nil, first, second)
	got, err := f.Summarize(t.Context(), summarize.Input{Messages: talk(t), Budget: 900})
	if err != nil || !strings.Contains(got.Render(), "retryLimit is 7 and backoff is 250 ms") {
		t.Errorf("%v\n%s", err, got.Render())
	}
	last := got.Report
	if last.By != "gpt-x" || len(last.Failures) != 1 || last.Failures[0].Step != "claude-x" {
		t.Errorf("report %+v", last)
	}
}
