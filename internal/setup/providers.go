package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/anthropic"
	"github.com/palimpsest-ai/palimpsest/llm/gemini"
	"github.com/palimpsest-ai/palimpsest/llm/openai"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func (p *Policy) open(use []string) (all []*guardedModel, err error) {
	for _, name := range use {
		var g llm.Generator = llm.Agent{}
		if name != llm.AgentName || !p.options.AllowAgent {
			if g, err = newClient(name, p.options); err != nil {
				return nil, err
			}
		}
		all = append(all, guard(name, g, &p.Settings.Summarizer, p.options))
	}
	return all, nil
}

// provider says how the models of a provider are found in the environment and asked. A
// function that is nil is something that they cannot do.
type provider struct {
	keys      []string // variables of which one is enough
	address   string   // the variable of the base URL
	summarize func(connection) (llm.Generator, error)
	embed     func(connection) (recall.Embedder, error)
	count     func(connection) (llm.TokenCounter, error)
}

// connection is a model and how to reach it.
type connection struct {
	*Options
	model, base string
	key, token  string // the values of the first and the second variable for keys
}

func (c connection) anthropic() (*anthropic.Client, error) {
	return anthropic.New(anthropic.Config{Model: c.model, BaseURL: c.base, Key: c.key, AuthToken: c.token, HTTP: c.HTTP, Retry: c.Retry})
}

func (c connection) openai() openai.Config {
	return openai.Config{Model: c.model, BaseURL: c.base, Key: c.key, HTTP: c.HTTP, Retry: c.Retry}
}

var providers = map[string]provider{
	"anthropic": {
		keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, address: "ANTHROPIC_BASE_URL",
		summarize: func(c connection) (llm.Generator, error) { return c.anthropic() },
		count:     func(c connection) (llm.TokenCounter, error) { return c.anthropic() },
	},
	"openai": {
		keys: []string{"OPENAI_API_KEY"}, address: "OPENAI_BASE_URL",
		summarize: func(c connection) (llm.Generator, error) { return openai.New(c.openai()) },
		embed:     func(c connection) (recall.Embedder, error) { return openai.NewEmbedder(c.openai()) },
	},
	"gemini": {
		keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, address: "GOOGLE_GEMINI_BASE_URL",
		count: func(c connection) (llm.TokenCounter, error) {
			return gemini.New(gemini.Config{Model: c.model, BaseURL: c.base, Key: cmp.Or(c.key, c.token), HTTP: c.HTTP, Retry: c.Retry})
		},
	},
}

// connect reads keys and address from the environment. A server at another address needs no
// key, the provider's own does. The error says what to set.
func (p provider) connect(model string, o *Options) (connection, error) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	var keys [2]string
	for i, name := range p.keys {
		keys[i] = strings.TrimSpace(getenv(name))
	}
	c := connection{o, model, strings.TrimSpace(getenv(p.address)), keys[0], keys[1]}
	if c.base == "" && c.key == "" && c.token == "" {
		return c, fmt.Errorf("set %s (or %s, for a server that needs no key)", strings.Join(p.keys, " or "), p.address)
	}
	return c, nil
}

func newClient(use string, o *Options) (llm.Generator, error) {
	if use == llm.AgentName {
		return nil, fmt.Errorf("%w: summarizer agent: there is no agent here whose model could be used; \"palimpsest run\" and \"palimpsest serve\" have one", ErrUsage)
	}
	name, model, _ := strings.Cut(use, ":")
	p := providers[name]
	if p.summarize == nil {
		return nil, fmt.Errorf("%w: summarizer %s: unknown provider %q", ErrUsage, use, name)
	}
	return newOf(p, "summarizer "+use, model, o, p.summarize)
}

// newOf makes a client of a model, by one of the functions of its provider. what names it in errors, which wrap ErrUsage.
func newOf[T any](p provider, what, model string, o *Options, by func(connection) (T, error)) (client T, err error) {
	c, err := p.connect(model, o)
	if err == nil {
		client, err = by(c)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrUsage, what, err)
	}
	return client, err
}

// Embedder makes the client of a model that turns texts into vectors, such as
// openai:text-embedding-3-small. It sends no request yet. Errors wrap ErrUsage.
func Embedder(use string, o *Options) (recall.Embedder, error) {
	name, model, _ := strings.Cut(use, ":")
	p := providers[name]
	if p.embed == nil || model == "" {
		return nil, fmt.Errorf("%w: embedder %s: want openai:MODEL", ErrUsage, use)
	}
	return newOf(p, "embedder "+use, model, cmp.Or(o, &Options{}), p.embed)
}

// Measure returns a counter for Config.Measure: it asks the provider of a prompt's model,
// if that provider counts and the environment has a key or an address for it. The error
// wraps ErrUsage if there is no such provider.
func Measure(models token.ModelSet, o *Options) (llm.TokenCounter, error) {
	m := &providerCounter{models: models, options: cmp.Or(o, &Options{}), clients: lru.New[string, llm.TokenCounter](maxCountedModels)}
	var missing []string
	for _, name := range slices.Sorted(maps.Values(countingProviders)) {
		_, err := providers[name].connect("", m.options)
		if err == nil {
			return m, nil
		}
		missing = append(missing, name+": "+err.Error())
	}
	return nil, fmt.Errorf("%w: measure: %s", ErrUsage, strings.Join(missing, "; "))
}

// countingProviders are the providers that count, by the counter that estimates for their
// models.
var countingProviders = map[string]string{"claude": "anthropic", "gemini": "gemini"}

// maxCountedModels limits the clients that are kept: model names come from requests.
const maxCountedModels = 100

// providerCounter asks the provider of each prompt's model.
type providerCounter struct {
	models  token.ModelSet
	options *Options
	clients *lru.Cache[string, llm.TokenCounter] // by model
}

func (m *providerCounter) CountTokens(ctx context.Context, p *prompt.Prompt) (int, error) {
	c, err := m.clientFor(p.Model)
	if err != nil {
		return 0, fmt.Errorf("measure %.100s: %w", p.Model, err)
	}
	return c.CountTokens(ctx, p)
}

func (m *providerCounter) clientFor(model string) (llm.TokenCounter, error) {
	known, err := m.models.Find(model)
	if err != nil {
		return nil, err
	}
	p := providers[countingProviders[known.Counter]]
	if p.count == nil {
		return nil, errors.New("its provider does not count")
	}
	to, err := p.connect(model, m.options)
	if err != nil {
		return nil, err
	}
	if c, ok := m.clients.Get(model); ok {
		return c, nil
	}
	c, err := p.count(to)
	if err != nil {
		return nil, err
	}
	m.clients.Put(model, c, 1)
	return c, nil
}

// AgentModel makes the client of an agent's own model, for proxy.Options. The transport of
// over sets address and key, so that those given here are never sent.
func AgentModel(api, model string, over *http.Client) (llm.Generator, error) {
	const nobody = "http://agent.invalid"
	switch api {
	case wire.Anthropic:
		return anthropic.New(anthropic.Config{Model: model, BaseURL: nobody, Key: "none", HTTP: over})
	case wire.Chat, wire.Responses:
		return openai.New(openai.Config{Model: model, BaseURL: nobody + "/v1", Key: "none", HTTP: over, Responses: api == wire.Responses})
	}
	return nil, fmt.Errorf("summarizer agent: models of the %s API write no summaries", api)
}
