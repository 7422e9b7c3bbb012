package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readStep reads a step of a request; path stands before its fields in problems.
func (c *call) readStep(q *api.Step, path string) (palimpsest.Step, error) {
	out := palimpsest.Step{Base: &prompt.Prompt{}, Window: q.Window, Output: q.Output, Budget: q.Budget}
	for name, n := range map[string]int{"window": q.Window, "output": q.Output, "budget": q.Budget} {
		if n < 0 {
			return out, badField(path+name, "want a number of tokens, 0 or more")
		}
	}
	if q.Force && c.op.ID != "prepare" {
		return out, badField(path+"force", "only prepare takes it; compact is what compacts now")
	}
	if q.Instructions != "" && !q.Force && c.op.ID != "compact" && c.op.ID != "preview" {
		return out, badField(path+"instructions", "only compact takes them, and prepare with force")
	}
	if q.API != "" && apicodec.For(q.API) == nil {
		return out, unknownAPI(q.API)
	}
	switch {
	case len(q.Body) > 0 && q.Base != nil:
		return out, badField(path+"base", "send body or base, not both")
	case len(q.Body) > 0:
		p, err := decodeBody(q.API, q.Body)
		if err != nil {
			return out, err
		}
		out.Messages, p.Messages = p.Messages, nil
		out.Base = p
	case q.Base != nil:
		base, err := q.Base.Value(path + "base")
		if err != nil {
			return out, err
		}
		out.Base = base
	}
	more, err := messagesOf(q.Messages, path+"messages")
	if err != nil {
		return out, err
	}
	out.Messages = append(out.Messages, more...)
	if q.Model != "" {
		out.Base.Model = q.Model
	}
	out.Profile = render.For(q.API)
	if c.s.config.Compactor.Recall == nil || len(out.Base.Tools) == 0 {
		// A client that offers its model no tools cannot be expected to run ours.
		out.Profile.Reach = render.Nowhere
	}
	c.fillModelLimits(&out)
	return out, nil
}

// fillModelLimits completes a step with the limits of its model.
func (c *call) fillModelLimits(step *palimpsest.Step) {
	m, err := c.s.config.Models.Find(step.Base.Model)
	if err != nil && c.s.config.Window == 0 {
		m, err = c.s.config.Models.Like(step.Base.Model)
	}
	if err == nil {
		step.Profile.BoundReasoning = m.BindsThinking
	}
	step.Output = cmp.Or(step.Output, m.AnswerReserve(step.Base.MaxOutput))
	step.Window = cmp.Or(step.Window, m.WindowBeside(step.Output), c.s.config.Window)
}

func (c *call) prepare(info store.Info, q *api.Step) (any, error) {
	step, err := c.readStep(q, "")
	if err != nil {
		return nil, err
	}
	if q.Edits && c.version == api.Any {
		if step.Messages, err = c.dropLogged(info.ID, step.Messages); err != nil {
			return nil, err
		}
	}
	if step.Messages, err = c.linkToThread(info.ID, step.Messages); err != nil {
		return nil, err
	}
	session := c.session(info.ID)
	if q.Force {
		if session, err = c.forceCompact(session, info.ID, step, q.Instructions); err != nil {
			return nil, err
		}
		step.Messages = nil // they are in the log
	}
	made, err := session.PrepareStep(c.r.Context(), step)
	if err != nil {
		return nil, err
	}
	return c.answerPrepared(info.ID, q, made)
}

// dropLogged leaves out the messages whose ids the log has. A host that applied earlier
// edits sends the rest of its history, which is not a part of the log as it stands.
func (c *call) dropLogged(id string, messages []thread.Message) ([]thread.Message, error) {
	log, err := c.tenant.Log.Load(c.r.Context(), id)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(messages, func(m thread.Message) bool {
		_, known := log.Index(m.ID)
		return m.ID != "" && known
	}), nil
}

// forceCompact adds the step's messages and compacts: to what the policy keeps or, when
// the conversation takes less, to half of it. When nothing can be removed it changes
// nothing. It returns the session that the step goes on with, without the condition of
// the request, which has been checked.
func (c *call) forceCompact(session *palimpsest.Session, id string, step palimpsest.Step, instructions string) (*palimpsest.Session, error) {
	ctx, unconditional := c.r.Context(), c.tenant.compactor.Session(id)
	step.OwnTarget = true
	_, err := session.Compact(ctx, step, instructions)
	if errors.Is(err, policy.ErrNothing) && step.Budget == 0 {
		step.Messages = nil
		made, failed := unconditional.PrepareStep(ctx, step)
		if failed != nil {
			return nil, failed
		}
		if step.Budget, step.OwnTarget = made.Tokens/2, false; step.Budget > 0 {
			_, err = unconditional.Compact(ctx, step, instructions)
		}
	}
	if err != nil && !errors.Is(err, policy.ErrNothing) && !errors.Is(err, palimpsest.ErrOverBudget) {
		return nil, err
	}
	return unconditional, nil
}

// answerPrepared answers with a prompt that a session prepared. It leaves out the list of
// hidden messages, which grows with the history.
func (c *call) answerPrepared(id string, q *api.Step, made *palimpsest.Prepared) (*api.Prepared, error) {
	c.tenant.prepared.Put(id, made, 1)
	c.setETag(made.Version)
	manifest := *made.Manifest
	manifest.Hidden = []render.Hidden{}
	out := &api.Prepared{Version: made.Version, PlanVersion: made.PlanVersion, Tokens: made.Tokens, Manifest: &manifest}
	if !q.Edits {
		return encodePrepared(q.API, made.Prompt, out)
	}
	log, err := c.tenant.Log.Load(c.r.Context(), id)
	if err != nil {
		return nil, err
	}
	return preparedAsEdits(q.API, log, made.Prompt, made.Manifest, out), nil
}

// encodePrepared writes a prompt in the form of an API, or in neutral form.
func encodePrepared(name string, p *prompt.Prompt, out *api.Prepared) (*api.Prepared, error) {
	if name == "" {
		out.Prompt = neutral.PromptOf(p)
		return out, nil
	}
	body, err := apicodec.For(name).Encode(p)
	out.API, out.Body = name, body
	return out, err
}

// planAt returns a version of the plans; nil for 0.
func (c *call) planAt(id string, version int) (*plan.Plan, error) {
	if version == 0 {
		return nil, nil
	}
	p, err := c.tenant.Plans.Plan(c.r.Context(), id, version)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problem(api.NotFound, "the thread has no plan %d; GET …/plans lists those that it has", version)
	}
	return p, err
}

// readAnswer reads an answer of the model.
func readAnswer(q *api.Answer) (messages []thread.Message, usage llm.Usage, err error) {
	if messages, err = messagesOf(q.Messages, "messages"); err != nil {
		return nil, usage, err
	}
	if len(q.Response) > 0 || q.API != "" {
		if len(messages) > 0 {
			return nil, usage, badField("messages", "send response or messages, not both")
		}
		var told *neutral.Usage
		if messages, told, err = decodeResponse(q.API, q.Response); err != nil {
			return nil, usage, err
		}
		q.Usage = cmp.Or(q.Usage, told)
	}
	if len(messages) == 0 {
		return nil, usage, problem(api.BadRequest, "there is no answer: send api and response, or messages")
	}
	for i := range messages {
		if messages[i].Role != thread.Assistant {
			return nil, usage, badField(fmt.Sprintf("messages[%d].role", i), "an answer of a model has the role assistant; send later messages with the next step")
		}
	}
	if u := q.Usage; u != nil {
		usage = llm.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output, Known: true}
	}
	return messages, usage, nil
}

func (c *call) finish(info store.Info, q *api.Answer) (any, error) {
	messages, usage, err := readAnswer(q)
	if err != nil {
		return nil, err
	}
	if messages, err = c.linkToThread(info.ID, messages); err != nil {
		return nil, err
	}
	appended, err := c.session(info.ID).Append(c.r.Context(), messages...)
	if err != nil {
		return nil, err
	}
	// The answer is in the log; FinishStep learns what the prompt before it used.
	prepared, _ := c.tenant.prepared.Get(info.ID)
	if err := c.tenant.compactor.Session(info.ID).FinishStep(c.r.Context(), prepared, usage); err != nil {
		return nil, err
	}
	return c.answerAppended(appended), nil
}

func (c *call) cutOff(info store.Info, q *api.CutOff) (any, error) {
	messages, usage, err := readAnswer(&q.Answer)
	if err != nil {
		return nil, err
	}
	if len(messages) > 1 {
		return nil, badField("messages", "an answer that was cut off is one message")
	}
	step, err := c.readPreparedStep(&q.Step, "step.")
	if err != nil {
		return nil, err
	}
	if messages, err = c.linkToThread(info.ID, messages); err != nil {
		return nil, err
	}
	made, err := c.session(info.ID).CutOff(c.r.Context(), c.tenant.lastPrepared(info.ID, step), usage, messages[0])
	if err != nil {
		return nil, err
	}
	return c.answerPrepared(info.ID, &q.Step, made)
}

// readPreparedStep reads a step that this daemon or another one has prepared.
func (c *call) readPreparedStep(q *api.Step, path string) (palimpsest.Step, error) {
	step, err := c.readStep(q, path)
	if err == nil && len(step.Messages) > 0 {
		err = badField(path+"messages", "the step's messages are in the thread already; send the step without them")
	}
	return step, err
}

func (c *call) overflowed(info store.Info, q *api.Step) (any, error) {
	step, err := c.readPreparedStep(q, "")
	if err != nil {
		return nil, err
	}
	made, err := c.session(info.ID).Overflowed(c.r.Context(), c.tenant.lastPrepared(info.ID, step))
	if err != nil {
		return nil, err
	}
	return c.answerPrepared(info.ID, q, made)
}

func (c *call) outcome(info store.Info, q *quality.Outcome) (any, error) {
	s := c.tenant.compactor.Session(info.ID)
	switch q.Task {
	case thread.Success, thread.Failure, thread.Partial:
		s.TaskFinished(q.Task)
	case "":
	default:
		return nil, badField("task", "want success, failure or partial, got %.40q", q.Task)
	}
	figures := s.Quality()
	if c.s.config.Proxy != nil { // the thread may be one that an agent has with its provider
		handler, err := c.s.config.Proxy(c.tenant.name)
		if p, ok := handler.(*proxy.Proxy); err == nil && ok {
			if seen := p.Finished(info.ID, q.Task); seen.Compactions > figures.Compactions {
				figures = seen
			}
		}
	}
	return figures, nil
}

func (c *call) compact(info store.Info, q *api.Compact) (any, error) {
	step, err := c.stepOrLast(info.ID, &q.Step)
	if err != nil {
		return nil, err
	}
	compactor, err := c.compactorFor(q)
	if err != nil {
		return nil, err
	}
	return c.changePlanBy(info.ID, c.withCondition(compactor.Session(info.ID)), func(ctx context.Context, s *palimpsest.Session) error {
		_, err := s.Compact(ctx, step, q.Instructions)
		return err
	})
}

func (c *call) dryRun(info store.Info, q *api.Step) (any, error) {
	step, err := c.stepOrLast(info.ID, q)
	if err != nil {
		return nil, err
	}
	p, err := c.tenant.compactor.Session(info.ID).Plan(c.r.Context(), step)
	if err != nil {
		return nil, err
	}
	return api.Plan{Plan: p}, nil
}

// readStepOnly reads a step that must bring no messages.
func (c *call) readStepOnly(q *api.Step) (palimpsest.Step, error) {
	step, err := c.readStep(q, "")
	if err == nil && len(step.Messages) > 0 {
		err = problem(api.BadRequest, "this operation adds no messages: POST …/messages does; send the step without them")
	}
	return step, err
}

func (c *call) render(info store.Info, q *api.Render) (any, error) {
	step, err := c.readStep(&q.Step, "step.")
	if err != nil {
		return nil, err
	}
	if len(step.Messages) > 0 {
		return nil, badField("step.messages", "rendering adds no messages; send the step without them")
	}
	version := *cmp.Or(q.PlanVersion, &info.Plans)
	if version < 0 {
		return nil, badField("plan_version", "want the version of a plan, or 0 for none")
	}
	p, err := c.planAt(info.ID, version)
	if err != nil {
		return nil, err
	}
	log, err := c.tenant.Log.Load(c.r.Context(), info.ID)
	if err != nil {
		return nil, err
	}
	res, err := c.tenant.compactor.Render(p, palimpsest.Request{Thread: log, Base: step.Base, Profile: step.Profile})
	if err != nil {
		return nil, err
	}
	c.setETag(log.Version())
	out := &api.Prepared{Version: log.Version(), PlanVersion: version, Tokens: res.After, Manifest: res.Manifest}
	if q.Step.Edits {
		return preparedAsEdits(q.Step.API, log, res.Prompt, res.Manifest, out), nil
	}
	return encodePrepared(q.Step.API, res.Prompt, out)
}
