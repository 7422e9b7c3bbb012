package setup

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// chain asks its models in order until one answers in full. It has at least one.
type chain struct{ models []*guardedModel }

var _ llm.Adjuster = (*chain)(nil)

// Model returns the names of all models: they key cached answers.
func (c *chain) Model() string {
	names := make([]string, len(c.models))
	for i, m := range c.models {
		names[i] = m.Model()
	}
	return strings.Join(names, ",")
}

// For returns the chain with the agent's model in its place.
func (c *chain) For(agent llm.Generator) llm.Generator {
	out := &chain{}
	for _, m := range c.models {
		out.models = append(out.models, m.For(agent).(*guardedModel))
	}
	return out
}

// Adjust is the same for all models, as they share their settings.
func (c *chain) Adjust(o *llm.Options) *llm.Options { return c.models[0].Adjust(o) }

// Generate asks the models in order. If no answer can be used, it returns that of the last
// model, or an *llm.AttemptsError if that one failed.
func (c *chain) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	var asked []llm.Attempt
	for n, m := range c.models {
		reply, err := m.Generate(ctx, p, o)
		answered := err == nil
		if answered {
			err = rejectionOf(reply)
		}
		asked = append(asked, llm.Attempt{Model: m.Model(), Err: err})
		// After an overflow the policy asks again with a smaller prompt.
		last := n == len(c.models)-1 || ctx.Err() != nil || llm.IsOverflow(err)
		switch {
		case answered && (err == nil || last):
			whole := *reply
			whole.Attempts = asked
			return &whole, nil
		case last:
			return nil, &llm.AttemptsError{Attempts: asked}
		}
	}
	return nil, errors.New("a chain without models")
}

// rejectionOf returns why a reply cannot be used; nil if it can.
func rejectionOf(reply *llm.Reply) error {
	switch {
	case reply.Err() != nil:
		return reply.Err()
	case reply.Stop == wire.StopTool:
		return &summarize.RejectedError{Reason: summarize.ToolCalled}
	case strings.TrimSpace(reply.Text) == "" && reply.JSON == "":
		return &summarize.RejectedError{Reason: summarize.Empty}
	}
	return nil
}

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
		// A failure that is about this request only says nothing of the next one.
		only := llm.IsOverflow(err) || errors.Is(err, llm.ErrInvalid) || errors.Is(err, llm.ErrRefused) || errors.Is(err, llm.ErrTruncated)
		if !errors.Is(err, context.Canceled) && !only {
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

// Adjust replaces what a prompt asks for by the settings.
func (g *guardedModel) Adjust(o *llm.Options) *llm.Options {
	out := *cmp.Or(o, &llm.Options{})
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
