package choice

import (
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

// provider is where a kind of model is found in the environment.
type provider struct {
	keys      []string // any of them will do
	address   string
	configure func(name string, o *Options, base, key, token string) (llm.Generator, error) // nil: it writes no summaries
	embed     func(name string, o *Options, base, key string) (recall.Embedder, error)      // nil: it has no vectors
	count     func(name string, o *Options, base, key, token string) (llm.TokenCounter, error)
}

var providers = map[string]provider{
	"anthropic": {
		keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, address: "ANTHROPIC_BASE_URL",
		configure: func(name string, o *Options, base, key, token string) (llm.Generator, error) {
			return anthropic.New(anthropic.Config{Model: name, BaseURL: base, Key: key, AuthToken: token, HTTP: o.HTTP, Retry: o.Retry})
		},
		count: func(name string, o *Options, base, key, token string) (llm.TokenCounter, error) {
			return anthropic.New(anthropic.Config{Model: name, BaseURL: base, Key: key, AuthToken: token, HTTP: o.HTTP, Retry: o.Retry})
		},
	},
	"openai": {
		keys: []string{"OPENAI_API_KEY"}, address: "OPENAI_BASE_URL",
		configure: func(name string, o *Options, base, key, _ string) (llm.Generator, error) {
			return openai.New(openai.Config{Model: name, BaseURL: base, Key: key, HTTP: o.HTTP, Retry: o.Retry})
		},
		embed: func(name string, o *Options, base, key string) (recall.Embedder, error) {
			return openai.NewEmbedder(openai.Config{Model: name, BaseURL: base, Key: key, HTTP: o.HTTP, Retry: o.Retry})
		},
	},
	"gemini": {
		keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, address: "GOOGLE_GEMINI_BASE_URL",
		count: func(name string, o *Options, base, key, token string) (llm.TokenCounter, error) {
			if key == "" {
				key = token // the older name of the key
			}
			return gemini.New(gemini.Config{Model: name, BaseURL: base, Key: key, HTTP: o.HTTP, Retry: o.Retry})
		},
	},
}

// fromEnv reads where a provider is from the environment; it is false where nothing says
// so. Servers at an address of one's own need no key; the providers' do.
func (p provider) fromEnv(o *Options) (base string, keys [2]string, ok bool) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	for i, key := range p.keys {
		keys[i] = strings.TrimSpace(getenv(key))
		ok = ok || keys[i] != ""
	}
	base = strings.TrimSpace(getenv(p.address))
	return base, keys, ok || base != ""
}

// missingHint says what to set where a provider is not found.
func (p provider) missingHint() string {
	return fmt.Sprintf("set %s (or %s, for a server that needs no key)", strings.Join(p.keys, " or "), p.address)
}

// newClient makes the client of one model.
func newClient(use string, o *Options) (llm.Generator, error) {
	if use == llm.AgentName {
		return nil, fmt.Errorf("%w: summarizer agent: no agent asks here whose model could be used; \"palimpsest run\" and \"palimpsest serve\" have one", ErrUsage)
	}
	kind, name, _ := strings.Cut(use, ":")
	p, ok := providers[kind]
	if !ok || p.configure == nil {
		return nil, fmt.Errorf("%w: summarizer %s: unknown provider %q", ErrUsage, use, kind)
	}
	base, values, ok := p.fromEnv(o)
	if !ok {
		return nil, fmt.Errorf("%w: summarizer %s: %s", ErrUsage, use, p.missingHint())
	}
	g, err := p.configure(name, o, base, values[0], values[1])
	if err != nil {
		return nil, fmt.Errorf("%w: summarizer %s: %w", ErrUsage, use, err)
	}
	return g, nil
}

// Embedder makes the client of a model that turns texts into vectors, such as
// openai:text-embedding-3-small; nothing is asked yet. Errors wrap ErrUsage.
func Embedder(use string, o *Options) (recall.Embedder, error) {
	if o == nil {
		o = &Options{}
	}
	kind, name, _ := strings.Cut(use, ":")
	p, ok := providers[kind]
	if !ok || p.embed == nil || name == "" {
		return nil, fmt.Errorf("%w: embedder %s: want openai:MODEL", ErrUsage, use)
	}
	base, keys, ok := p.fromEnv(o)
	if !ok {
		return nil, fmt.Errorf("%w: embedder %s: %s", ErrUsage, use, p.missingHint())
	}
	e, err := p.embed(name, o, base, keys[0])
	if err != nil {
		return nil, fmt.Errorf("%w: embedder %s: %w", ErrUsage, use, err)
	}
	return e, nil
}

// Measure returns what asks the provider of a prompt's model for its size, for
// Config.Measure: those providers that count, and of which the environment holds a key
// or an address. The error wraps ErrUsage where it holds none.
func Measure(models token.ModelSet, o *Options) (llm.TokenCounter, error) {
	if o == nil {
		o = &Options{}
	}
	m := &tokenMeasurer{models: models, options: o, clients: lru.New[string, llm.TokenCounter](maxMeasuredModels)}
	var want []string
	for _, kind := range slices.Sorted(maps.Values(countingProviders)) {
		if _, _, ok := providers[kind].fromEnv(o); ok {
			return m, nil
		}
		want = append(want, kind+": "+providers[kind].missingHint())
	}
	return nil, fmt.Errorf("%w: measure: %s", ErrUsage, strings.Join(want, "; "))
}

// countingProviders are the providers that count, by the counter that estimates for their models.
var countingProviders = map[string]string{"claude": "anthropic", "gemini": "gemini"}

// maxMeasuredModels bounds the models whose counters are held: names come from requests.
const maxMeasuredModels = 100

type tokenMeasurer struct {
	models  token.ModelSet
	options *Options

	clients *lru.Cache[string, llm.TokenCounter] // by model
}

// CountTokens implements llm.TokenCounter.
func (m *tokenMeasurer) CountTokens(ctx context.Context, p *prompt.Prompt) (int, error) {
	c, err := m.clientFor(p.Model)
	if err != nil {
		return 0, fmt.Errorf("measure %.100s: %w", p.Model, err)
	}
	return c.CountTokens(ctx, p)
}

func (m *tokenMeasurer) clientFor(model string) (llm.TokenCounter, error) {
	known, err := m.models.Find(model)
	if err != nil {
		return nil, err
	}
	p, ok := providers[countingProviders[known.Counter]]
	if !ok {
		return nil, errors.New("its provider does not count")
	}
	base, keys, ok := p.fromEnv(m.options)
	if !ok {
		return nil, errors.New(p.missingHint())
	}
	if c, ok := m.clients.Get(model); ok {
		return c, nil
	}
	c, err := p.count(model, m.options, base, keys[0], keys[1])
	if err != nil {
		return nil, err
	}
	m.clients.Put(model, c, 1)
	return c, nil
}

// AgentModel makes the client of an agent's own model for proxy.Options. Where it is and who
// asks is of the connections: what stands for an address and a key here is sent nowhere.
func AgentModel(api, model string, over *http.Client) (llm.Generator, error) {
	const nobody = "http://agent.invalid"
	switch api {
	case wire.Anthropic:
		return anthropic.New(anthropic.Config{Model: model, BaseURL: nobody, Key: "none", HTTP: over})
	case wire.Chat, wire.Responses:
		return openai.New(openai.Config{Model: model, BaseURL: nobody + "/v1", Key: "none", HTTP: over, Responses: api == wire.Responses})
	}
	return nil, fmt.Errorf("summarizer agent: agents of the API %s write no summaries", api)
}
