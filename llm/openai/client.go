// Package openai is the client of the Chat Completions API
// (https://platform.openai.com/docs/api-reference/chat), which most providers
// and local servers speak: OpenAI, Azure, Ollama, vLLM, llama.cpp, LM Studio,
// OpenRouter, Groq, DeepSeek, Gemini's compatible endpoint. With Config.Responses it
// speaks OpenAI's Responses API instead. It uses the lossless codecs of wire/openai
// and net/http.
//
// Those servers differ in the fields they accept. The client tries the best form first,
// steps down when a server refuses a field by name, and remembers that for later
// requests.
package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
	codec "github.com/palimpsest-ai/palimpsest/wire/openai"
)

// defaultBaseURL is where OpenAI's own API is.
const defaultBaseURL = "https://api.openai.com/v1"

// Config says whom to ask. Only Model is required.
type Config struct {
	// Model is the name of the model.
	Model string
	// BaseURL is the address with the version, as OpenAI's SDKs take it
	// (http://localhost:11434/v1); empty takes OPENAI_BASE_URL from the
	// environment, or else https://api.openai.com/v1.
	BaseURL string
	// Key is sent as a bearer token; empty takes OPENAI_API_KEY. When that is
	// empty too no credentials are sent, as local servers need none.
	Key string `json:"-"`
	// Responses asks through POST …/responses in place of …/chat/completions.
	// The provider is told not to store the answers.
	Responses bool
	// Provider is the name in errors and in String; empty stands for "openai".
	Provider string
	// Header is sent with every request. It may hold secrets and is not shown.
	Header http.Header `json:"-"`
	// HTTP sends the requests; nil stands for one with the default transport.
	// Redirects are never followed.
	HTTP *http.Client
	// Retry bounds the repeats of failures that may pass.
	Retry llm.Retry
	// MaxResponse is the largest answer, in bytes; 0 stands for 64 MB.
	MaxResponse int64
}

// Format shows the configuration without its secrets, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "openai.Config{Model: %q, Provider: %q}", c.Model, c.Provider)
}

// Client asks one model. It is safe for concurrent use.
type Client struct {
	model    string
	provider string
	api      api
	exchange *exchange.Client
	mu       sync.Mutex
	form     requestForm
}

var _ llm.Generator = (*Client)(nil)

// api holds what differs between the two APIs.
type api struct {
	path  string
	codec interface {
		wire.Codec
		wire.Answers
	}
	finish func(body string, o *llm.Options, limit int, w requestForm) string
}

var (
	chat      = api{"/chat/completions", codec.Chat{}, finishChat}
	responses = api{"/responses", codec.Responses{}, finishResponses}
)

// New returns a client. The error says which part of the configuration is
// missing or wrong.
func New(c Config) (*Client, error) {
	api := chat
	if c.Responses {
		api = responses
	}
	client, err := newClient(c, api)
	if err != nil {
		return nil, fmt.Errorf("openai.New: %w", err)
	}
	return client, nil
}

func newClient(c Config, api api) (*Client, error) {
	if c.Model == "" {
		return nil, errors.New("name the model")
	}
	base := cmp.Or(c.BaseURL, os.Getenv("OPENAI_BASE_URL"), defaultBaseURL)
	key := cmp.Or(strings.TrimSpace(c.Key), strings.TrimSpace(os.Getenv("OPENAI_API_KEY")))
	provider := cmp.Or(c.Provider, "openai")
	address, query, _ := strings.Cut(base, "?") // Azure carries its api-version there
	address = strings.TrimRight(address, "/") + api.path
	if query != "" {
		address += "?" + query
	}
	x, err := exchange.New(exchange.Config{
		Provider: provider,
		URL:      address,
		HTTP:     c.HTTP,
		Header:   exchange.Headers(c.Header, "Authorization", exchange.Bearer(key)),
		Retry:    c.Retry,
		Limit:    c.MaxResponse,
	})
	if err != nil {
		return nil, err
	}
	known := requestForm{oldMaxTokens: !deprecatesMaxTokens(base)}
	return &Client{model: c.Model, provider: provider, api: api, exchange: x, form: known}, nil
}

// deprecatesMaxTokens reports whether the server is one that deprecates max_tokens. Others
// know that field, and some of them no other (Mistral, Ollama).
func deprecatesMaxTokens(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com")
}

// Model returns the name of the model.
func (c *Client) Model() string { return c.model }

// String names the client and its model.
func (c *Client) String() string { return c.provider + ":" + c.model }

// Generate asks the model; see llm.Generator.
func (c *Client) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	o = cmp.Or(o, &llm.Options{})
	if timeout := cmp.Or(o.Timeout, llm.DefaultTimeout); timeout > 0 {
		// One timeout covers all the steps down.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	renamed := false
	for {
		w := c.currentForm()
		body, err := c.requestBody(p, o, w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.provider, err)
		}
		reply, err := c.exchange.Ask(ctx, -1, &exchange.Question{Body: body, API: c.api.codec, Schema: o.Schema, Adjust: adjustAnswer})
		if err == nil || !c.stepDown(err, w, o, &renamed) {
			return reply, err
		}
	}
}

// adjustAnswer returns an error for the stop reasons that are failures of the provider.
func adjustAnswer(a *wire.Answer) error {
	switch strings.ToLower(a.Reason) {
	case "error", "network_error": // OpenRouter, z.ai
		return &llm.APIError{Kind: llm.ErrServer, Code: a.Reason, Message: "the provider stopped the answer"}
	case "insufficient_system_resource": // DeepSeek
		return &llm.APIError{Kind: llm.ErrOverloaded, Code: a.Reason, Message: "the provider stopped the answer"}
	}
	return nil
}
