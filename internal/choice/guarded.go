package choice

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
)

// rest is for how long a model that failed is not asked again. A plan is made in
// several tries, and each would wait for the same failure.
const rest = time.Minute

// guarded is a model under the settings of a summarizer. One that cannot answer is
// left alone for a while. Safe for concurrent use.
type guarded struct {
	llm.Generator
	name     string
	settings *policyfile.Summarizer
	used     func(string, llm.Usage)
	now      func() time.Time

	mu     sync.Mutex
	failed error
	until  time.Time
}

var _ llm.Adjuster = (*guarded)(nil)

func guard(name string, g llm.Generator, s *policyfile.Summarizer, o *Options) *guarded {
	out := &guarded{Generator: g, name: name, settings: s, used: o.Used, now: o.Now}
	if out.now == nil {
		out.now = time.Now
	}
	return out
}

// Model returns provider and name.
func (g *guarded) Model() string { return g.name }

// For returns the model of the agent under the same settings, where this one stands for
// it. It is not left alone when it fails: the next request is of somebody else's.
func (g *guarded) For(agent llm.Generator) llm.Generator {
	if _, ok := g.Generator.(llm.Agent); !ok {
		return g
	}
	return &guarded{Generator: agent, name: agent.Model(), settings: g.settings, used: g.used, now: g.now}
}

// Unwrap returns the model itself, which has the name that conversations use.
func (g *guarded) Unwrap() llm.Generator { return g.Generator }

// Generate asks the model; see llm.Generator.
func (g *guarded) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	g.mu.Lock()
	failed, until := g.failed, g.until
	g.mu.Unlock()
	if failed != nil && g.now().Before(until) && (o == nil || !o.Again) {
		return nil, &llm.RepeatedError{Err: failed}
	}
	reply, err := g.Generator.Generate(ctx, p, g.Adjust(o))
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		if !errors.Is(err, context.Canceled) && !ofTheRequest(err) {
			g.failed, g.until = err, g.now().Add(rest)
		}
		return nil, err
	}
	g.failed = nil
	if g.used != nil {
		g.used(g.name, reply.Usage)
	}
	return reply, nil
}

// ofTheRequest reports whether a failure says nothing of the next request. One
// that the server does not take is tried in plainer words at once.
func ofTheRequest(err error) bool {
	return llm.IsOverflow(err) || errors.Is(err, llm.ErrInvalid) || errors.Is(err, llm.ErrRefused) || errors.Is(err, llm.ErrTruncated)
}

// Adjust puts the settings over what a prompt asks for.
func (g *guarded) Adjust(o *llm.Options) *llm.Options {
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
