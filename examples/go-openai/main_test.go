package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/palimpsest-ai/palimpsest/examples/internal/provider"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func TestAgent(t *testing.T) {
	provider.TestTask(t, func(t *testing.T, url string, over http.RoundTripper) (string, error) {
		t.Setenv("OPENAI_BASE_URL", url+"/v1")
		t.Setenv("OPENAI_API_KEY", "none")
		request := newRequest(adaptertest.Task)
		tool := request.Tools[0].Function
		tool.Name, tool.Parameters = adaptertest.ReadPart, json.RawMessage(adaptertest.ReadPartTakes)
		request.MaxCompletionTokens = adaptertest.Output
		return agent(t.Context(), newClient(over), request, provider.ReadPart)
	})
}
