package anthropic_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/leak"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/anthropic"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestGenerator(t *testing.T) {
	llmtest.TestGenerator(t, func(tb testing.TB, url string, hc *http.Client, r llm.Retry) llm.Generator {
		return newClient(tb, anthropic.Config{BaseURL: url, HTTP: hc, Retry: r})
	})
}

func newClient(tb testing.TB, c anthropic.Config) *anthropic.Client {
	tb.Helper()
	if c.Model == "" {
		c.Model = "test-model"
	}
	if c.Key == "" {
		c.Key = "sk-ant-not-a-real-key"
	}
	client, err := anthropic.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}
