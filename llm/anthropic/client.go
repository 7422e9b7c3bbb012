// Package anthropic is a client of the Anthropic Messages API
// (https://docs.anthropic.com/en/api/messages) and of servers that speak it. It uses the
// lossless codec wire/anthropic and net/http.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
	codec "github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// defaultBaseURL is where Anthropic's own API is.
const defaultBaseURL = "https://api.anthropic.com"

// defaultVersion is the API version that requests ask for.
const defaultVersion = "2023-06-01"

// provider is the name in errors.
const provider = "anthropic"

// Config says whom to ask. Only Model is required.
type Config struct {
	// Model is the name of the model.
	Model string
	// BaseURL is the address without /v1, as Anthropic's SDKs take it; empty
	// takes ANTHROPIC_BASE_URL from the environment, or else https://api.anthropic.com.
	BaseURL string
	// Key is sent as x-api-key and AuthToken as a bearer token. When both are
	// empty they are taken from ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN; when
	// those are empty too no credentials are sent, as local servers need none.
	Key       string `json:"-"`
	AuthToken string `json:"-"`
	// Version is the anthropic-version; empty stands for 2023-06-01.
	Version string
	// Header is sent with every request, such as anthropic-beta. It may hold
	// secrets and is not shown.
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
	fmt.Fprintf(f, "anthropic.Config{Model: %q}", c.Model)
}

// Client asks one model. It is safe for concurrent use.
type Client struct {
	model         string
	exchange      *exchange.Client
	countExchange *exchange.Client // the endpoint that counts
	// noTemperature is set once the model has refused a temperature, as the newest do.
	noTemperature *atomic.Bool
}

var _ llm.Generator = (*Client)(nil)

// New returns a client. The error says which part of the configuration is
// missing or wrong.
func New(c Config) (*Client, error) {
	if c.Model == "" {
		return nil, errors.New("anthropic.New: name the model")
	}
	base := cmp.Or(c.BaseURL, os.Getenv("ANTHROPIC_BASE_URL"), defaultBaseURL)
	key, token := strings.TrimSpace(c.Key), strings.TrimSpace(c.AuthToken)
	if key == "" && token == "" {
		key = strings.TrimSpace(os.Getenv("ANTHROPIC_API_KEY"))
		token = strings.TrimSpace(os.Getenv("ANTHROPIC_AUTH_TOKEN"))
	}
	ask := exchange.Config{
		Provider: provider,
		URL:      strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") + "/v1/messages",
		HTTP:     c.HTTP,
		Header: exchange.Headers(c.Header,
			"Anthropic-Version", cmp.Or(c.Version, defaultVersion), "X-Api-Key", key, "Authorization", exchange.Bearer(token)),
		Retry: c.Retry,
		Limit: c.MaxResponse,
	}
	x, err := exchange.New(ask)
	if err != nil {
		return nil, fmt.Errorf("anthropic.New: %w", err)
	}
	ask.URL += "/count_tokens"
	counting, err := exchange.New(ask)
	if err != nil {
		return nil, fmt.Errorf("anthropic.New: %w", err)
	}
	return &Client{model: c.Model, exchange: x, countExchange: counting, noTemperature: new(atomic.Bool)}, nil
}

// Model returns the name of the model.
func (c *Client) Model() string { return c.model }

// String names the client and its model.
func (c *Client) String() string { return provider + ":" + c.model }

// Generate asks the model; see llm.Generator. After a model refuses the temperature, it is
// asked again, and from then on, without one.
func (c *Client) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	o = cmp.Or(o, &llm.Options{})
	reply, err := c.ask(ctx, p, o)
	if e, ok := errors.AsType[*llm.APIError](err); ok && e.Kind == llm.ErrInvalid && o.Temperature != nil && !hasThinking(p) &&
		strings.Contains(strings.ToLower(e.Message), "temperature") {
		c.noTemperature.Store(true)
		return c.ask(ctx, p, o)
	}
	return reply, err
}

func (c *Client) ask(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	body, forced, err := c.newRequest(p, o)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	q := &exchange.Question{Body: body, API: codec.Codec{}, Schema: o.Schema}
	if forced != "" {
		q.Adjust = func(a *wire.Answer) error {
			textOfForced(forced, a)
			return nil
		}
	}
	return c.exchange.Ask(ctx, o.Timeout, q)
}
