package choice

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/anthropic"
	"github.com/palimpsest-ai/palimpsest/llm/openai"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// AsksAgent reports whether the agent's own model is among those that write summaries.
func (c *Choice) AsksAgent() bool { return slices.Contains(c.Settings.Summarizer.Use, llm.AgentName) }

// Agent makes the client of an agent's own model for proxy.Options. Where it is and who
// asks is of the connections: what stands for an address and a key here is sent nowhere.
func Agent(api, model string, over *http.Client) (llm.Generator, error) {
	const nobody = "http://agent.invalid"
	switch api {
	case wire.Anthropic:
		return anthropic.New(anthropic.Config{Model: model, BaseURL: nobody, Key: "none", HTTP: over})
	case wire.Chat, wire.Responses:
		return openai.New(openai.Config{Model: model, BaseURL: nobody + "/v1", Key: "none", HTTP: over, Responses: api == wire.Responses})
	}
	return nil, fmt.Errorf("summarizer agent: agents of the API %s write no summaries", api)
}
