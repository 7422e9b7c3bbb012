package daemon

import (
	"encoding/json"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/ourform"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// codecs read and write the providers' forms.
func codecs() map[string]wire.Codec {
	return map[string]wire.Codec{
		wire.Anthropic: anthropic.Codec{},
		wire.Chat:      openai.Chat{},
		wire.Responses: openai.Responses{},
		wire.Gemini:    gemini.Codec{},
	}
}

func unknownAPI(name string) error {
	return at("api", problem(api.BadRequest, fmt.Sprintf("api: want anthropic, openai, responses or gemini, got %.40q", name)))
}

// decodeBody reads a provider's request body.
func decodeBody(name string, body json.RawMessage) (*prompt.Prompt, error) {
	codec := codecs()[name]
	switch {
	case codec == nil:
		return nil, unknownAPI(name)
	case len(body) == 0:
		return nil, at("body", problem(api.BadRequest, "body: send a request body of the api that is named"))
	}
	p, err := codec.Decode(body)
	if err != nil {
		return nil, at("body", problem(api.BadRequest, "body: "+err.Error()))
	}
	p.Messages = ourform.Mark(p.Messages, nil)
	for i := range p.Messages {
		if m := &p.Messages[i]; m.Role == thread.User {
			m.Kind = injected.Message(m)
		}
	}
	return p, nil
}

// reply is what an answer of any provider has in it: each uses some of the
// fields.
type reply struct {
	// Anthropic: the answer is a message.
	Content json.RawMessage `json:"content"`
	// OpenAI Chat.
	Choices []struct {
		Message json.RawMessage `json:"message"`
	} `json:"choices"`
	// OpenAI Responses.
	Output json.RawMessage `json:"output"`
	// Gemini.
	Candidates []struct {
		Content json.RawMessage `json:"content"`
	} `json:"candidates"`

	Usage struct {
		// Anthropic and Responses.
		InputTokens  int `json:"input_tokens"`
		OutputTokens int `json:"output_tokens"`
		CacheRead    int `json:"cache_read_input_tokens"`
		CacheWrite   int `json:"cache_creation_input_tokens"`
		InputDetails struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		// Chat.
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		PromptDetails    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	GeminiUsage struct {
		Prompt     int `json:"promptTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
		Thoughts   int `json:"thoughtsTokenCount"`
		Cached     int `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
}

// decodeResponse reads the answer out of a provider's response body.
func decodeResponse(name string, body json.RawMessage) ([]thread.Message, error) {
	if codecs()[name] == nil {
		return nil, unknownAPI(name)
	}
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, at("response", problem(api.BadRequest, "response: not a response body of the api that is named"))
	}
	var messages []thread.Message
	var err error
	switch {
	case name == wire.Anthropic && len(r.Content) > 0:
		// The element that stands for the answer in later requests.
		messages, err = anthropic.DecodeMessage(`{"role":"assistant","content":` + string(r.Content) + `}`)
	case name == wire.Chat && len(r.Choices) > 0:
		messages, _, err = openai.DecodeChatMessages("[" + string(r.Choices[0].Message) + "]")
	case name == wire.Responses && len(r.Output) > 0:
		messages, _, err = openai.DecodeItems(string(r.Output))
	case name == wire.Gemini && len(r.Candidates) > 0:
		messages, err = gemini.DecodeContents("[" + string(r.Candidates[0].Content) + "]")
	default:
		return nil, at("response", problem(api.BadRequest, "response: there is no answer in it; send the whole response body as the provider gave it, of a stream what it adds up to"))
	}
	if err != nil {
		return nil, at("response", problem(api.BadRequest, "response: "+err.Error()))
	}
	return messages, nil
}

// usageOf is what the response says that it used; nil where it says nothing.
func usageOf(name string, body json.RawMessage) *neutral.Usage {
	var r reply
	if json.Unmarshal(body, &r) != nil {
		return nil
	}
	u := neutral.Usage{}
	switch name {
	case wire.Anthropic:
		u = neutral.Usage{Input: r.Usage.InputTokens + r.Usage.CacheRead + r.Usage.CacheWrite, CacheRead: r.Usage.CacheRead, CacheWrite: r.Usage.CacheWrite, Output: r.Usage.OutputTokens}
	case wire.Chat:
		u = neutral.Usage{Input: r.Usage.PromptTokens, CacheRead: r.Usage.PromptDetails.Cached, Output: r.Usage.CompletionTokens}
	case wire.Responses:
		u = neutral.Usage{Input: r.Usage.InputTokens, CacheRead: r.Usage.InputDetails.Cached, Output: r.Usage.OutputTokens}
	case wire.Gemini:
		u = neutral.Usage{Input: r.GeminiUsage.Prompt, CacheRead: r.GeminiUsage.Cached, Output: r.GeminiUsage.Candidates + r.GeminiUsage.Thoughts}
	}
	if u == (neutral.Usage{}) {
		return nil
	}
	return &u
}
