package setup

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
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

// fallbackPolicy is a policy that asks models itself. When all of them fail, it uses the
// same policy with summaries made by code: an agent that has reached its window cannot go
// on without a compaction. A job first tries again: code takes over in the last attempt.
type fallbackPolicy struct {
	policy.Policy
	fallback policy.Policy
	models   string
}

// Unwrap returns the policy that asks the models (see policy.As).
func (r *fallbackPolicy) Unwrap() policy.Policy { return r.Policy }

// Plan makes the plan with the models, else without.
func (r *fallbackPolicy) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	f, cause := r.Policy.Plan(ctx, s)
	if cause == nil || ctx.Err() != nil || errors.Is(cause, policy.ErrNothing) || s.Attempt < s.Attempts {
		return f, cause
	}
	f, err := r.fallback.Plan(ctx, s)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	f.Summaries = slices.Concat(policy.SummariesOf(nil, cause), f.Summaries, []summarize.Report{{By: "extractive", Failures: summarize.Failures(r.models, cause)}})
	return f, nil
}
