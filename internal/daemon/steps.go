package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// readStep reads a step of a request; path stands before its fields in problems.
func readStep(c *call, q *api.Step, path string) (palimpsest.Step, error) {
	out := palimpsest.Step{Base: &prompt.Prompt{}, Window: q.Window, Output: q.Output, Budget: q.Budget}
	for name, n := range map[string]int{"window": q.Window, "output": q.Output, "budget": q.Budget} {
		if n < 0 {
			return out, badField(path+name, "want a number of tokens, 0 or more")
		}
	}
	if q.Force && c.op.ID != "prepare" {
		return out, badField(path+"force", "only prepare takes it; compact is what compacts now")
	}
	if q.Why != "" && c.op.ID != "overflowed" {
		return out, badField(path+"why", "only overflowed takes why the provider refused a request")
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
	if c.tenant.config.Recall == nil || len(out.Base.Tools) == 0 {
		// A client that offers its model no tools cannot be expected to run ours.
		out.Profile.Reach = render.Nowhere
	}
	c.s.config.fillModelLimits(&out)
	if out.Window > 0 && q.Output >= out.Window {
		return out, badField(path+"output", "want less than the window of %d tokens, which holds request and answer, not %d", out.Window, q.Output)
	}
	return out, nil
}

// fillModelLimits completes a step with the limits of its model.
func (c *Config) fillModelLimits(step *palimpsest.Step) {
	m, err := c.Models.Find(step.Base.Model)
	if err != nil && c.Window == 0 {
		m, err = c.Models.Like(step.Base.Model)
	}
	if err == nil {
		step.Profile.BoundReasoning = m.BindsThinking
	}
	step.Output = cmp.Or(step.Output, m.AnswerReserve(step.Base.MaxOutput, cmp.Or(step.Window, c.Window)))
	step.Window = cmp.Or(step.Window, c.Window, m.WindowBeside(step.Output))
}

// readPrepared reads a step that this daemon or another one has prepared.
func readPrepared(c *call, q *api.Step, path string) (palimpsest.Step, error) {
	return readEmpty(c, q, path, badField(path+"messages", "the step's messages are in the thread already; send the step without them"))
}

// readEmpty reads a step that must bring no messages; hasSome is the problem of one that does.
func readEmpty(c *call, q *api.Step, path string, hasSome error) (palimpsest.Step, error) {
	step, err := readStep(c, q, path)
	if err == nil && len(step.Messages) > 0 {
		err = hasSome
	}
	return step, err
}

// readOrLast is the request around a thread's messages: what the caller sets, and the
// agent's last request for the rest.
func readOrLast(c *call, id string, q *api.Step) (palimpsest.Step, error) {
	last, err := c.tenant.lastStep(c.r.Context(), id)
	if err != nil {
		return last, err
	}
	asked := *q
	asked.Window = cmp.Or(q.Window, last.Window)
	step, err := readEmpty(c, &asked, "", problem(api.BadRequest, "this operation adds no messages: POST …/messages does; send the step without them"))
	if err != nil {
		return step, err
	}
	if last.Base != nil && q.Base == nil && len(q.Body) == 0 {
		step.Base, step.Fixed, step.Profile = last.Base, last.Fixed, last.Profile
	}
	step.Output = cmp.Or(q.Output, last.Output, step.Output)
	if step.Window > 0 && step.Output >= step.Window { // it was beside another window
		step.Output = token.Model{}.AnswerReserve(step.Output, step.Window)
	}
	step.Budget = cmp.Or(q.Budget, last.Budget)
	step.OwnTarget = q.Budget == 0 // that of the agent bounds each of its requests
	return step, nil
}

// readCompact reads a request for a plan: the step, and the compactor with the policy that it names.
func readCompact(c *call, id string, q *api.Compact) (*palimpsest.Compactor, palimpsest.Step, error) {
	step, err := readOrLast(c, id, &q.Step)
	if err != nil {
		return nil, step, err
	}
	compactor, err := namedCompactor(c, step.Base.Model, q)
	return compactor, step, err
}

func prepareStep(c *call, info store.Info, q *api.Step) (any, error) {
	if off := c.s.config.Off; off != nil {
		if why := off(info.ID); why != "" {
			return nil, problem(api.Forbidden, "%s", why)
		}
	}
	step, err := readStep(c, q, "")
	if err != nil {
		return nil, err
	}
	if q.Edits && c.version == api.Any {
		if step.Messages, err = dropLogged(c, info.ID, step.Messages); err != nil {
			return nil, err
		}
	}
	if step.Messages, err = linkToThread(c, info.ID, step.Messages); err != nil {
		return nil, err
	}
	session := c.withCondition(c.tenant.compactors.of(step.Base.Model).online.Session(info.ID))
	if q.Force {
		if session, err = forceCompact(c, session, info.ID, step, q.Instructions); err != nil {
			return nil, err
		}
		step.Messages = nil // they are in the log
	}
	made, err := session.PrepareStep(c.r.Context(), step)
	if err != nil {
		return nil, err
	}
	return answerPrepared(c, info.ID, q, made)
}

// dropLogged leaves out the messages whose ids the log has. A host that applied earlier
// edits sends the rest of its history, which is not a part of the log as it stands.
func dropLogged(c *call, id string, messages []thread.Message) ([]thread.Message, error) {
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
func forceCompact(c *call, session *palimpsest.Session, id string, step palimpsest.Step, instructions string) (*palimpsest.Session, error) {
	ctx, unconditional := c.r.Context(), c.tenant.compactors.of(step.Base.Model).online.Session(id)
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
	if err != nil && !errors.Is(err, policy.ErrNothing) && !errors.Is(err, policy.ErrOverBudget) {
		return nil, err
	}
	return unconditional, nil
}

// answerPrepared answers with a prompt that a session prepared. It leaves out the list of
// hidden messages, which grows with the history.
func answerPrepared(c *call, id string, q *api.Step, made *palimpsest.Prepared) (*api.Prepared, error) {
	c.tenant.keepPrepared(id, made)
	if q.Output == 0 && made.Prompt.Source == nil { // what the daemon keeps free was not asked for
		made.Prompt.MaxOutput = cmp.Or(q.Base, &neutral.Prompt{}).MaxOutput
	}
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

func readAnswer(q *api.Answer) (messages []thread.Message, usage wire.Usage, err error) {
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
		usage = wire.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output, Known: true}
	}
	return messages, usage, nil
}

func finishStep(c *call, info store.Info, q *api.Answer) (any, error) {
	messages, usage, err := readAnswer(q)
	if err != nil {
		return nil, err
	}
	appended, err := appendLinked(c, info.ID, messages)
	if err != nil {
		return nil, err
	}
	// The answer is in the log; FinishStep learns what the prompt before it used.
	if err := c.compactor(info.ID).Session(info.ID).FinishStep(c.r.Context(), c.tenant.keptPrepared(info.ID), usage); err != nil {
		return nil, err
	}
	return answerAppended(c, appended), nil
}

func cutOffStep(c *call, info store.Info, q *api.CutOff) (any, error) {
	messages, usage, err := readAnswer(&q.Answer)
	if err != nil {
		return nil, err
	}
	if len(messages) > 1 {
		return nil, badField("messages", "an answer that was cut off is one message")
	}
	step, err := readPrepared(c, &q.Step, "step.")
	if err != nil {
		return nil, err
	}
	if messages, err = linkToThread(c, info.ID, messages); err != nil {
		return nil, err
	}
	made, err := c.session(info.ID).CutOff(c.r.Context(), c.tenant.lastPrepared(info.ID, step), usage, messages[0])
	if err != nil {
		return nil, err
	}
	return answerPrepared(c, info.ID, &q.Step, made)
}

// refusals are why a provider refuses a request for its size.
var refusals = map[string]llm.Kind{"": llm.ErrOverflow, "tokens": llm.ErrOverflow, "pictures": llm.ErrPictures, "bytes": llm.ErrBytes, "output": llm.ErrOutput}

func overflowedStep(c *call, info store.Info, q *api.Step) (any, error) {
	why, ok := refusals[q.Why]
	if !ok {
		return nil, badField("why", "want tokens, pictures, bytes or output, got %.40q", q.Why)
	}
	step, err := readPrepared(c, q, "")
	if err != nil {
		return nil, err
	}
	made, err := c.session(info.ID).Overflowed(c.r.Context(), c.tenant.lastPrepared(info.ID, step), why)
	if err != nil {
		return nil, err
	}
	return answerPrepared(c, info.ID, q, made)
}

func noteOutcome(c *call, info store.Info, q *quality.Outcome) (any, error) {
	s := c.compactor(info.ID).Session(info.ID)
	switch q.Task {
	case thread.Success, thread.Failure, thread.Partial:
		s.TaskFinished(q.Task)
	case "":
	default:
		return nil, badField("task", "want success, failure or partial, got %.40q", q.Task)
	}
	figures := s.Quality()
	if proxied := c.s.config.Proxy; proxied != nil { // the thread may be one that an agent has with its provider
		handler, err := proxied(c.tenant.name)
		if p, ok := handler.(*proxy.Proxy); err == nil && ok {
			if seen := p.Finished(info.ID, q.Task); seen.Compactions > figures.Compactions {
				figures = seen
			}
		}
	}
	return figures, nil
}

func compactThread(c *call, info store.Info, q *api.Compact) (any, error) {
	compactor, step, err := readCompact(c, info.ID, q)
	if err != nil {
		return nil, err
	}
	_, err = c.withCondition(compactor.Session(info.ID)).Compact(c.r.Context(), step, q.Instructions)
	return answerChanged(c, info.ID, err)
}

func planThread(c *call, info store.Info, q *api.Step) (any, error) {
	step, err := readOrLast(c, info.ID, q)
	if err != nil {
		return nil, err
	}
	p, err := c.tenant.compactors.of(step.Base.Model).online.Session(info.ID).Plan(c.r.Context(), step)
	if err != nil {
		return nil, err
	}
	return api.Plan{Plan: p}, nil
}

func renderThread(c *call, info store.Info, q *api.Render) (any, error) {
	step, err := readEmpty(c, &q.Step, "step.", badField("step.messages", "rendering adds no messages; send the step without them"))
	if err != nil {
		return nil, err
	}
	version := *cmp.Or(q.PlanVersion, &info.Plans)
	if version < 0 {
		return nil, badField("plan_version", "want the version of a plan, or 0 for none")
	}
	p, log, err := c.planAndLog(info.ID, version)
	if err != nil {
		return nil, err
	}
	res, err := c.tenant.compactors.of(step.Base.Model).online.Render(p, renderRequest(log, step))
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
