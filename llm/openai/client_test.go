package openai_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/leak"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/openai"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestGenerator(t *testing.T) {
	llmtest.TestGenerator(t, func(tb testing.TB, url string, hc *http.Client, r llm.Retry) llm.Generator {
		return newClient(tb, openai.Config{BaseURL: url + "/v1", HTTP: hc, Retry: r})
	})
}

func TestGeneratorResponses(t *testing.T) {
	llmtest.TestGenerator(t, func(tb testing.TB, url string, hc *http.Client, r llm.Retry) llm.Generator {
		return newClient(tb, openai.Config{BaseURL: url + "/v1", HTTP: hc, Retry: r, Responses: true})
	})
}

func newClient(tb testing.TB, c openai.Config) *openai.Client {
	tb.Helper()
	if c.Model == "" {
		c.Model = "test-model"
	}
	if c.Key == "" {
		c.Key = "sk-not-a-real-key"
	}
	client, err := openai.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}
