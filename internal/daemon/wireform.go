package daemon

import (
	"encoding/json"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func unknownAPI(name string) error {
	return badField("api", "want anthropic, openai, responses or gemini, got %.40q", name)
}

// decodeBody reads a provider's request body.
func decodeBody(name string, body json.RawMessage) (*prompt.Prompt, error) {
	codec := apicodec.For(name)
	switch {
	case codec == nil:
		return nil, unknownAPI(name)
	case len(body) == 0:
		return nil, badField("body", "send a request body of the api that is named")
	}
	p, err := codec.Decode(string(body))
	if err != nil {
		return nil, badField("body", "%s", err)
	}
	p.Messages = injected.MarkKinds(p.Messages, nil)
	return p, nil
}

// decodeResponse reads a provider's response body: the answer, and the usage, which is
// nil where it is missing or does not count the prompt alone.
func decodeResponse(name string, body json.RawMessage) ([]thread.Message, *neutral.Usage, error) {
	codec := apicodec.For(name)
	if codec == nil {
		return nil, nil, unknownAPI(name)
	}
	a, err := codec.DecodeAnswer(body)
	if err != nil {
		return nil, nil, badField("response", "%s; send the whole response body as the provider gave it; of a stream, what it adds up to", err)
	}
	var usage *neutral.Usage
	if u := a.Usage; u.Known && !u.Mixed {
		usage = &neutral.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output}
	}
	if a.Message.Frame == nil && len(a.Message.Parts) == 0 {
		return nil, usage, nil // the model said nothing
	}
	return []thread.Message{a.Message}, usage, nil
}
