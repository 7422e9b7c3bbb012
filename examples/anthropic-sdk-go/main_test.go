package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/palimpsest-ai/palimpsest/examples/internal/provider"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func TestAgent(t *testing.T) {
	provider.TestTask(t, func(t *testing.T, url string, over http.RoundTripper) (string, error) {
		t.Setenv("ANTHROPIC_BASE_URL", url)
		t.Setenv("ANTHROPIC_API_KEY", "none")
		client, request := newClient(over), newRequest(adaptertest.Task)
		var takes anthropic.ToolInputSchemaParam
		if err := json.Unmarshal([]byte(adaptertest.ReadPartTakes), &takes); err != nil {
			t.Fatal(err)
		}
		request.Tools[0].OfTool.Name, request.Tools[0].OfTool.InputSchema = adaptertest.ReadPart, takes
		request.MaxTokens = adaptertest.Output
		return agent(t.Context(), &client, request, provider.ReadPart)
	})
}
