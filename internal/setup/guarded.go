package setup

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// retryDelay is the pause after a model failed. A plan takes several attempts, and each would
// wait for the same failure.
const retryDelay = time.Minute

// guardedModel is a model under the settings of a summarizer. After a failure it is not
// asked for retryDelay. Safe for concurrent use.
type guardedModel struct {
	llm.Generator
	name     string
	settings *policyfile.Summarizer
	onUsage  func(string, wire.Usage)
	now      func() time.Time

	mu      sync.Mutex
	failed  error
	retryAt time.Time
}

var _ llm.Adjuster = (*guardedModel)(nil)

func guard(name string, g llm.Generator, s *policyfile.Summarizer, o *Options) *guardedModel {
	out := &guardedModel{Generator: g, name: name, settings: s, onUsage: o.OnUsage, now: o.Now}
	if out.now == nil {
		out.now = time.Now
	}
	return out
}

// Model returns provider and name.
func (g *guardedModel) Model() string { return g.name }

// For returns the agent's model under the same settings if this one stands for it. That
// model gets no pause after a failure, as it serves one request only.
func (g *guardedModel) For(agent llm.Generator) llm.Generator {
	if _, ok := g.Generator.(llm.Agent); !ok {
		return g
	}
	return &guardedModel{Generator: agent, name: agent.Model(), settings: g.settings, onUsage: g.onUsage, now: g.now}
}

// Unwrap returns the model itself.
func (g *guardedModel) Unwrap() llm.Generator { return g.Generator }

// Generate asks the model; see llm.Generator.
func (g *guardedModel) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	g.mu.Lock()
	failed, until := g.failed, g.retryAt
	g.mu.Unlock()
	if failed != nil && g.now().Before(until) && (o == nil || !o.RetryFailed) {
		return nil, &llm.RepeatedError{Err: failed}
	}
	reply, err := g.Generator.Generate(ctx, p, g.Adjust(o))
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		if !errors.Is(err, context.Canceled) && !isRequestError(err) {
			g.failed, g.retryAt = err, g.now().Add(retryDelay)
		}
		return nil, err
	}
	g.failed = nil
	if g.onUsage != nil {
		g.onUsage(g.name, reply.Usage)
	}
	return reply, nil
}

// isRequestError reports whether a failure is about this request only: the next one may
// succeed.
func isRequestError(err error) bool {
	return llm.IsOverflow(err) || errors.Is(err, llm.ErrInvalid) || errors.Is(err, llm.ErrRefused) || errors.Is(err, llm.ErrTruncated)
}

// Adjust replaces what a prompt asks for by the settings.
func (g *guardedModel) Adjust(o *llm.Options) *llm.Options {
	var out llm.Options
	if o != nil {
		out = *o
	}
	switch t := g.settings.Temperature; t {
	case policyfile.PromptTemperature:
	case policyfile.NoTemperature:
		out.Temperature = nil
	default:
		out.Temperature = &t
	}
	if g.settings.MaxOutput > 0 {
		out.MaxOutput = g.settings.MaxOutput
	}
	out.Timeout, out.Fresh = g.settings.Timeout, !g.settings.Cache
	return &out
}
