// Package gemini asks Google's API how many tokens a request has
// (https://ai.google.dev/api/tokens). To get answers from Gemini models, use package
// llm/openai with Gemini's OpenAI-compatible endpoint.
package gemini

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/prompt"
	wire "github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// defaultBaseURL is where Google's own API is.
const defaultBaseURL = "https://generativelanguage.googleapis.com"

// provider is the name in errors.
const provider = "gemini"

// Config says whom to ask. Only Model is required.
type Config struct {
	// Model is the name of the model, without "models/".
	Model string
	// BaseURL is the address without a version; empty takes GOOGLE_GEMINI_BASE_URL
	// from the environment, or else https://generativelanguage.googleapis.com.
	BaseURL string
	// Key is sent as x-goog-api-key; empty takes GEMINI_API_KEY or GOOGLE_API_KEY
	// from the environment. Without one no credentials are sent.
	Key string `json:"-"`
	// HTTP sends the requests; nil stands for one with the default transport.
	// Redirects are never followed.
	HTTP *http.Client
	// Retry bounds the repeats of failures that may pass.
	Retry llm.Retry
}

// Format shows the configuration without its key, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "gemini.Config{Model: %q}", c.Model) }

// Counter asks for the sizes of requests to one model. It is safe for concurrent
// use.
type Counter struct {
	model    string
	exchange *exchange.Client
}

var _ llm.TokenCounter = (*Counter)(nil)

// New returns a counter. The error says which part of the configuration is
// missing or wrong.
func New(c Config) (*Counter, error) {
	model := strings.TrimPrefix(c.Model, "models/")
	if model == "" {
		return nil, errors.New("gemini.New: name the model")
	}
	base := cmp.Or(c.BaseURL, os.Getenv("GOOGLE_GEMINI_BASE_URL"), defaultBaseURL)
	key := cmp.Or(strings.TrimSpace(c.Key), strings.TrimSpace(os.Getenv("GEMINI_API_KEY")), strings.TrimSpace(os.Getenv("GOOGLE_API_KEY")))
	x, err := exchange.New(exchange.Config{
		Provider: provider,
		URL:      strings.TrimRight(base, "/") + "/v1beta/models/" + url.PathEscape(model) + ":countTokens",
		HTTP:     c.HTTP,
		Header:   exchange.Headers(nil, "X-Goog-Api-Key", key),
		Retry:    c.Retry,
	})
	if err != nil {
		return nil, fmt.Errorf("gemini.New: %w", err)
	}
	return &Counter{model: model, exchange: x}, nil
}

// String names the counter and its model.
func (c *Counter) String() string { return provider + ":" + c.model }

// countedMembers are the members of a request that count towards its size.
var countedMembers = [...]string{"contents", "systemInstruction", "tools", "toolConfig"}

// CountTokens asks models.countTokens; see llm.TokenCounter. The endpoint is free.
func (c *Counter) CountTokens(ctx context.Context, p *prompt.Prompt) (int, error) {
	body, err := wire.Codec{}.Encode(p)
	if err != nil {
		return 0, fmt.Errorf("gemini: %w", err)
	}
	request := new(rawjson.Object).Str("model", "models/"+c.model)
	for _, name := range countedMembers {
		request.Raw(name, gjson.GetBytes(body, name).Raw)
	}
	return c.exchange.Count(ctx, new(rawjson.Object).Raw("generateContentRequest", request.String()).String(), "totalTokens")
}
