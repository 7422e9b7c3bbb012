package daemon

import (
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// maxOutput is the most that is kept free for an answer where the step does not
// say, in tokens: agents that do well reserve up to 20,000 of a large limit.
const maxOutput = 20_000

// step reads a step of the wire. api and path say where it stands in its request.
func (c *call) step(q *api.Step, path string) (palimpsest.Step, error) {
	out := palimpsest.Step{Base: &prompt.Prompt{}, Window: q.Window, Output: q.Output, Budget: q.Budget}
	for name, n := range map[string]int{"window": q.Window, "output": q.Output, "budget": q.Budget} {
		if n < 0 {
			return out, at(path+name, problem(api.BadRequest, path+name+": want a number of tokens, 0 or more"))
		}
	}
	if q.API != "" && codecs()[q.API] == nil {
		return out, unknownAPI(q.API)
	}
	switch {
	case len(q.Body) > 0 && q.Base != nil:
		return out, at(path+"base", problem(api.BadRequest, path+"base: send body or base, not both"))
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
	c.fit(&out)
	return out, nil
}

// fit fills in what is known of the model.
func (c *call) fit(step *palimpsest.Step) {
	var m token.Model
	if step.Base.Model != "" {
		if found, err := c.s.models.Find(step.Base.Model); err == nil {
			m = found
			step.Profile.BoundReasoning = m.BindsThinking
		}
	}
	if step.Window == 0 {
		step.Window = m.Window
	}
	if step.Window == 0 {
		step.Window = c.s.config.Window
	}
	if step.Output == 0 {
		step.Output = min(step.Base.MaxOutput, maxOutput)
	}
	if step.Output == 0 {
		step.Output = min(m.MaxOutput, maxOutput)
	}
}

func (c *call) prepare() (any, error) {
	id, _, err := c.known()
	if err != nil {
		return nil, err
	}
	var q api.Step
	if err := c.decode(&q); err != nil {
		return nil, err
	}
	step, err := c.step(&q, "")
	if err != nil {
		return nil, err
	}
	if err := c.add(id, &step); err != nil {
		return nil, err
	}
	h := c.tenant.open(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.PrepareStep(c.r.Context(), step); err != nil {
		return nil, err
	}
	h.stepped = true
	answer, err := c.prepared(id, q.API, step, nil)
	if err != nil {
		return nil, err
	}
	if c.s.config.Background != nil && c.pastSoft(step, answer.Tokens) {
		if err := c.s.config.Background.Enqueue(c.r.Context(), c.tenant.name, id, step); err != nil {
			c.s.log.ErrorContext(c.r.Context(), "enqueue", "request", requestID(c.r.Context()), "cause", causeOf(err))
		}
	}
	return answer, nil
}

// add writes the messages of a step to the log by itself, so that a version or
// ids that were named count, and takes them out of the step.
func (c *call) add(id string, step *palimpsest.Step) error {
	switch {
	case len(step.Messages) > 0:
		if _, _, err := c.write(id, step.Messages); err != nil {
			return err
		}
		step.Messages = nil
	case c.version != api.Any:
		log, err := c.tenant.Log.Load(c.r.Context(), id)
		if err != nil {
			return err
		}
		if log.Version() != c.version {
			return &store.ConflictError{ThreadID: id, Want: c.version, Have: log.Version()}
		}
	}
	return nil
}

// pastSoft reports whether a request has passed the mark from which the next plan
// can be prepared.
func (c *call) pastSoft(step palimpsest.Step, tokens int) bool {
	limit := step.Budget
	if limit == 0 {
		limit = step.Window - step.Output
	}
	return limit > 0 && tokens >= token.Model{Window: limit}.Marks(0).Soft
}

// prepared renders the thread under a plan; nil is the one in force.
func (c *call) prepared(id, name string, step palimpsest.Step, version *int) (*api.Prepared, error) {
	ctx := c.r.Context()
	// The plan first: it holds for its thread and any longer one.
	p, inForce, err := c.tenant.Plans.Current(ctx, id)
	if err != nil {
		return nil, err
	}
	if version != nil {
		if p, err = c.planAt(id, *version); err != nil {
			return nil, err
		}
		inForce = *version
	}
	log, err := c.tenant.Log.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	q := palimpsest.Request{Thread: log, Base: step.Base, Profile: step.Profile}
	res, err := c.tenant.compactor.Render(p, q)
	if err != nil && version == nil && errors.Is(err, plan.ErrInvalid) {
		// As PrepareStep does: a plan that does not hold any more is left aside.
		res, err = c.tenant.compactor.Render(nil, q)
		inForce = 0
	}
	if err != nil {
		return nil, err
	}
	out := &api.Prepared{Version: log.Version(), PlanVersion: inForce, Tokens: res.After, API: name, Manifest: res.Manifest}
	if name == "" {
		out.Prompt = neutral.PromptOf(res.Prompt)
	} else {
		body, err := codecs()[name].Encode(res.Prompt)
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	c.etag(log.Version())
	return out, nil
}

// planAt returns a version of the plans; nil for 0.
func (c *call) planAt(id string, version int) (*plan.Plan, error) {
	if version == 0 {
		return nil, nil
	}
	p, err := c.tenant.Plans.Plan(c.r.Context(), id, version)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problem(api.NotFound, fmt.Sprintf("the thread has no plan %d; GET …/plans lists those that it has", version))
	}
	return p, err
}

func (c *call) finish() (any, error) {
	id, _, err := c.known()
	if err != nil {
		return nil, err
	}
	var q api.Answer
	if err := c.decode(&q); err != nil {
		return nil, err
	}
	messages, err := messagesOf(q.Messages, "messages")
	if err != nil {
		return nil, err
	}
	if len(q.Response) > 0 || q.API != "" {
		if len(messages) > 0 {
			return nil, at("messages", problem(api.BadRequest, "messages: send response or messages, not both"))
		}
		if messages, err = decodeResponse(q.API, q.Response); err != nil {
			return nil, err
		}
		if q.Usage == nil {
			q.Usage = usageOf(q.API, q.Response)
		}
	}
	if len(messages) == 0 {
		return nil, problem(api.BadRequest, "there is no answer: send api and response, or messages")
	}
	for i := range messages {
		if messages[i].Role != thread.Assistant {
			return nil, at(fmt.Sprintf("messages[%d].role", i), problem(api.BadRequest, "the answer of a model has the role assistant; send what came after it with the next step"))
		}
	}
	log, first, err := c.write(id, messages)
	if err != nil {
		return nil, err
	}
	h := c.tenant.open(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.FinishStep(c.r.Context()); err != nil {
		return nil, err
	}
	return c.appended(log, first, len(messages)), nil
}

func (c *call) overflowed() (any, error) {
	id, _, err := c.known()
	if err != nil {
		return nil, err
	}
	var q api.Step
	if err := c.decode(&q); err != nil {
		return nil, err
	}
	step, err := c.step(&q, "")
	if err != nil {
		return nil, err
	}
	if len(step.Messages) > 0 {
		return nil, problem(api.BadRequest, "the step's messages are in the thread already; send the step without them")
	}
	h := c.tenant.open(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stepped {
		// The daemon was started since the step, or another one prepared it.
		if _, err := h.PrepareStep(c.r.Context(), step); err != nil {
			return nil, err
		}
		h.stepped = true
	}
	if _, err := h.Overflowed(c.r.Context()); err != nil {
		return nil, err
	}
	return c.prepared(id, q.API, step, nil)
}

func (c *call) compact() (any, error) {
	id, step, err := c.still()
	if err != nil {
		return nil, err
	}
	h := c.tenant.open(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.Compact(pin(c.r.Context(), c.version), step); err != nil {
		return nil, c.pinned(id, err)
	}
	h.stepped = true
	return c.current(id)
}

func (c *call) dryRun() (any, error) {
	id, step, err := c.still()
	if err != nil {
		return nil, err
	}
	h := c.tenant.open(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.Plan(c.r.Context(), step)
	if err != nil {
		return nil, err
	}
	return api.Plan{Plan: p}, nil
}

// still reads a step that adds no messages.
func (c *call) still() (string, palimpsest.Step, error) {
	id, _, err := c.known()
	if err != nil {
		return "", palimpsest.Step{}, err
	}
	var q api.Step
	if err := c.decode(&q); err != nil {
		return "", palimpsest.Step{}, err
	}
	step, err := c.step(&q, "")
	if err == nil && len(step.Messages) > 0 {
		err = problem(api.BadRequest, "this operation adds no messages: POST …/messages does; send the step without them")
	}
	return id, step, err
}

func (c *call) render() (any, error) {
	id, _, err := c.known()
	if err != nil {
		return nil, err
	}
	var q api.Render
	if err := c.decode(&q); err != nil {
		return nil, err
	}
	step, err := c.step(&q.Step, "step.")
	if err != nil {
		return nil, err
	}
	if len(step.Messages) > 0 {
		return nil, at("step.messages", problem(api.BadRequest, "rendering adds no messages; send the step without them"))
	}
	if q.PlanVersion != nil && *q.PlanVersion < 0 {
		return nil, at("plan_version", problem(api.BadRequest, "plan_version: want the version of a plan, or 0 for none"))
	}
	return c.prepared(id, q.Step.API, step, q.PlanVersion)
}
