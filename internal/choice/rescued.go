package choice

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
)

// chain asks one model after the other until one answers in full, and notes in
// the context of a plan what happened. At least one model is required.
type chain struct{ models []*guarded }

// Model returns the name of the first model.
func (c *chain) Model() string { return c.models[0].Model() }

// Generate asks the models in order; the error is that of the last.
func (c *chain) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	notes, _ := ctx.Value(notesKey{}).(*notes)
	var last error
	for _, m := range c.models {
		reply, err := m.Generate(ctx, p, o)
		if err == nil {
			err = rejected(reply)
		}
		notes.add(m.Model(), err)
		if err == nil {
			return reply, nil
		}
		last = err
		if ctx.Err() != nil || llm.IsOverflow(err) {
			break // the policy makes the request smaller
		}
	}
	return nil, last
}

// rejected says why an answer is none, whoever asked.
func rejected(reply *llm.Reply) error {
	switch {
	case reply.Err() != nil:
		return reply.Err()
	case reply.Stop == llm.StopTool:
		return &summarize.RejectedError{Reason: summarize.ToolCalled}
	case strings.TrimSpace(reply.Text) == "" && reply.JSON == "":
		return &summarize.RejectedError{Reason: summarize.Empty}
	}
	return nil
}

// notes is what happened to the models while one plan was made.
type notes struct {
	mu       sync.Mutex
	by       string
	failures []summarize.Failure
}

type notesKey struct{}

func (n *notes) add(model string, err error) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		n.by = model
		return
	}
	n.by = ""
	n.failures = append(n.failures, summarize.Failure{Step: model, Err: err})
}

// rescued is a policy that asks models itself, with what stands in when all of
// them fail: the same policy, with summaries made by code. The seeds of session
// and workstream would leave the thread as it is then, which is no help to one
// who cannot go on without a compaction.
type rescued struct {
	policy.Policy
	byCode policy.Policy
	report summarize.Reporter
}

// rescue wraps a policy. One that lets compactions be prepared early still does.
func rescue(p, byCode policy.Policy, report summarize.Reporter) policy.Policy {
	r := &rescued{Policy: p, byCode: byCode, report: report}
	if early, ok := p.(policy.Early); ok {
		return rescuedEarly{r, early}
	}
	return r
}

type rescuedEarly struct {
	*rescued
	policy.Early
}

// Unwrap returns the policy that asks the models (see policy.As).
func (r *rescued) Unwrap() policy.Policy { return r.Policy }

// Plan makes the plan with the models, or else without.
func (r *rescued) Plan(ctx context.Context, s *policy.State) (*policy.Fitted, error) {
	n := &notes{}
	f, err := r.Policy.Plan(context.WithValue(ctx, notesKey{}, n), s)
	report := summarize.Report{By: n.by, Failures: n.failures}
	switch {
	case err == nil && f.Fallback != "":
		report.By = f.Fallback
		if len(report.Failures) == 0 {
			report.Failures = []summarize.Failure{{Step: n.by, Err: f.Failure}}
		}
	case err == nil && n.by == "" && len(n.failures) > 0:
		report.By = "extractive" // the policy's own rule
	case err != nil && ctx.Err() == nil && !errors.Is(err, policy.ErrNothing):
		if n.by != "" { // it answered, and the policy did not take it
			report.Failures = append(report.Failures, summarize.Failure{Step: n.by, Err: err})
		}
		cause := err
		if f, err = r.byCode.Plan(ctx, s); err != nil {
			return nil, errors.Join(cause, err)
		}
		report.By, f.Fallback, f.Failure = "extractive", "extractive", cause
	}
	if err == nil && report.By != "" && r.report != nil {
		r.report(ctx, report)
	}
	return f, err
}
