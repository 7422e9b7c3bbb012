package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"

	"github.com/palimpsest-ai/palimpsest/examples/internal/provider"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func TestAgent(t *testing.T) {
	provider.TestTask(t, func(t *testing.T, url string, over http.RoundTripper) (string, error) {
		t.Setenv("OPENAI_BASE_URL", url+"/v1")
		t.Setenv("OPENAI_API_KEY", "none")
		client, request := newClient(over), newRequest(adaptertest.Task)
		tool := request.Tools[0].GetFunction()
		tool.Name, tool.Parameters = adaptertest.ReadPart, nil
		if err := json.Unmarshal([]byte(adaptertest.ReadPartTakes), &tool.Parameters); err != nil {
			t.Fatal(err)
		}
		request.MaxCompletionTokens = openai.Int(adaptertest.Output)
		return agent(t.Context(), &client, request, provider.ReadPart)
	})
}
