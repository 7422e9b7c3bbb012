package choice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/token"
)

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
	base, keys, ok := p.found(o)
	if !ok {
		return nil, fmt.Errorf("%w: embedder %s: %s", ErrUsage, use, p.wanting())
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
	m := &measure{models: models, options: o, made: lru.New[string, llm.TokenCounter](mostMeasured)}
	var want []string
	for _, kind := range slices.Sorted(maps.Values(counting)) {
		if _, _, ok := providers[kind].found(o); ok {
			return m, nil
		}
		want = append(want, kind+": "+providers[kind].wanting())
	}
	return nil, fmt.Errorf("%w: measure: %s", ErrUsage, strings.Join(want, "; "))
}

// counting are the providers that count, by the counter that estimates for their models.
var counting = map[string]string{"claude": "anthropic", "gemini": "gemini"}

// mostMeasured bounds the models whose counters are held: names come from requests.
const mostMeasured = 100

type measure struct {
	models  token.ModelSet
	options *Options

	made *lru.Cache[string, llm.TokenCounter] // by model
}

// CountTokens implements llm.TokenCounter.
func (m *measure) CountTokens(ctx context.Context, p *prompt.Prompt) (int, error) {
	c, err := m.of(p.Model)
	if err != nil {
		return 0, fmt.Errorf("measure %.100s: %w", p.Model, err)
	}
	return c.CountTokens(ctx, p)
}

func (m *measure) of(model string) (llm.TokenCounter, error) {
	known, err := m.models.Find(model)
	if err != nil {
		return nil, err
	}
	p, ok := providers[counting[known.Counter]]
	if !ok {
		return nil, errors.New("its provider does not count")
	}
	base, keys, ok := p.found(m.options)
	if !ok {
		return nil, errors.New(p.wanting())
	}
	if c, ok := m.made.Get(model); ok {
		return c, nil
	}
	c, err := p.count(model, m.options, base, keys[0], keys[1])
	if err != nil {
		return nil, err
	}
	m.made.Put(model, c, 1)
	return c, nil
}
