package daemon

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/internal/web"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// maxViewPlans is how many plans a view shows over time, the newest of them.
const maxViewPlans = 60

// viewThread shows the thread under the plan in force or another.
func viewThread(c *call, info store.Info) (any, error) {
	version, err := c.queryNumber("plan", info.Plans, 0, math.MaxInt)
	if err != nil {
		return nil, err
	}
	shown, err := viewInput(c, info, version)
	if err != nil {
		return nil, err
	}
	c.setETag(shown.Thread.Version(), info.Plans)
	return web.View(*shown), nil
}

// renderView renders the thread under a version of its plans, within the request that
// it also returns.
func renderView(c *call, id string, version int) (*palimpsest.Result, palimpsest.Request, palimpsest.Step, error) {
	p, log, err := c.planAndLog(id, version)
	if err != nil {
		return nil, palimpsest.Request{}, palimpsest.Step{}, err
	}
	step, err := readOrLast(c, id, &api.Step{})
	if err != nil {
		return nil, palimpsest.Request{}, step, err
	}
	q := renderRequest(log, step)
	res, err := web.Render(c.compactor(id), p, q)
	return res, q, step, err
}

// planAndLog are what a prompt is rendered from: a version of the plans (nil for 0), and the log.
func (c *call) planAndLog(id string, version int) (*plan.Plan, *thread.Thread, error) {
	p, err := c.tenant.planAt(c.r.Context(), id, version)
	if err != nil {
		return nil, nil, err
	}
	log, err := c.tenant.Log.Load(c.r.Context(), id)
	return p, log, err
}

func renderRequest(log *thread.Thread, step palimpsest.Step) palimpsest.Request {
	return palimpsest.Request{Thread: log, Base: step.Base, Fixed: step.Fixed, Profile: step.Profile}
}

// viewInput is the thread under a version of its plans.
func viewInput(c *call, info store.Info, version int) (*web.Input, error) {
	res, q, step, err := renderView(c, info.ID, version)
	if err != nil {
		return nil, err
	}
	shown := &web.Input{Thread: q.Thread, Result: res, Version: version, Counter: c.tenant.config.Counter, Window: step.Window, Budget: step.Budget, UnstoredTokens: step.Fixed}
	if step.Base != nil {
		shown.Model, _ = c.s.config.Models.Find(step.Base.Model) // unknown models have no prices
	}
	shown.CompactsAt = compactsAt(c.tenant.config.Policy, shown, step.Output)
	for v := max(1, info.Plans-maxViewPlans+1); v <= info.Plans; v++ {
		under := res
		if v != version {
			p, err := c.tenant.planAt(c.r.Context(), info.ID, v)
			if err != nil {
				return nil, err
			}
			if under, err = web.Render(c.compactor(info.ID), p, q); err != nil {
				continue // it no longer fits the log
			}
		}
		shown.Plans = append(shown.Plans, web.PlanResult{Version: v, Result: under})
	}
	return shown, nil
}

// compactsAt is the size above which a policy compacts by itself; 0 for one that names none.
func compactsAt(p policy.Policy, in *web.Input, output int) int {
	marked, ok := cmp.Or[policy.Policy](p, policy.Auto{}).(interface {
		Marks(s *policy.Situation) policy.Marks
	})
	if !ok {
		return 0
	}
	rates, _ := in.Model.Rates(in.Result.After)
	return marked.Marks(&policy.Situation{
		Thread: in.Thread, Current: in.Result.Plan, PlainSizes: in.Result.Sizes, Window: in.Window, Output: output, Budget: in.Budget, Rates: rates,
		Fixed: in.Result.Fixed, PromptTokens: in.Result.After, MessageTokens: in.Result.After - in.Result.Fixed, CacheLife: in.Model.Cache.Life(),
	}).Mark
}

// viewText answers with a message of the log, or with a part of the prompt.
func viewText(c *call, info store.Info) (any, error) {
	query := c.r.URL.Query()
	answer := textAnswer{mediaType: "text/plain; charset=utf-8"}
	c.w.Header().Set("Content-Security-Policy", "sandbox")
	if id := query.Get("message"); id != "" {
		log, err := c.tenant.Log.Load(c.r.Context(), info.ID)
		if err != nil {
			return nil, err
		}
		i, ok := log.Index(thread.ID(id))
		if !ok {
			return nil, problemAt(api.NotFound, "message", "the thread has no message %.80q", id)
		}
		answer.content = web.Text(log.At(i))
		return answer, nil
	}
	part, err := c.queryNumber("part", -1, 0, math.MaxInt)
	if err != nil {
		return nil, err
	}
	version, err := c.queryNumber("plan", info.Plans, 0, math.MaxInt)
	if err != nil {
		return nil, err
	}
	res, _, step, err := renderView(c, info.ID, version)
	if err != nil {
		return nil, err
	}
	var ok bool
	if answer.content, ok = web.PartText(web.Input{Result: res, UnstoredTokens: step.Fixed}, part); !ok {
		return nil, problemAt(api.NotFound, "part", "want the id of a message as message, or a position in the prompt as part")
	}
	return answer, nil
}

// viewPreview shows the thread under the plan that compact would make. Nothing is stored.
func viewPreview(c *call, info store.Info, q *api.Compact) (any, error) {
	compactor, step, err := readCompact(c, info.ID, q)
	if err != nil {
		return nil, err
	}
	p, err := compactor.Session(info.ID).Plan(c.r.Context(), step)
	if err != nil {
		return nil, err
	}
	shown, err := viewInput(c, info, info.Plans)
	if err != nil {
		return nil, err
	}
	if shown.Result, err = web.Render(c.compactor(info.ID), p, renderRequest(shown.Thread, step)); err != nil {
		return nil, err
	}
	shown.Version, shown.Budget, shown.UnstoredTokens = 0, step.Budget, step.Fixed
	shown.Plans = append(shown.Plans, web.PlanResult{Result: shown.Result})
	shown.MaxTextBytes = maxPreviewTexts // the plan is not stored, so its texts cannot be asked for later
	return web.View(*shown), nil
}

// maxPreviewTexts is how many bytes the texts of a preview may take together, before
// they are shortened.
const maxPreviewTexts = 4 << 20

// namedCompactor is the tenant's compactor, with the policy that a request names.
func namedCompactor(c *call, model string, q *api.Compact) (*palimpsest.Compactor, error) {
	if q.Policy == "" && q.Favor == "" {
		return c.tenant.compactors.of(model).online, nil
	}
	if c.s.config.Policies == nil {
		return nil, badField("policy", "this daemon uses only the policy that it was started with")
	}
	name := cmp.Or(q.Policy, "auto")
	if !slices.Contains(policyfile.Bases(), name) {
		return nil, badField("policy", "want one of %s; got %.40q", strings.Join(policyfile.Bases(), ", "), q.Policy)
	}
	if q.Favor != "" && (!policyfile.Default(name).HasFavors() || !slices.Contains(policy.Favors(), q.Favor)) {
		return nil, badField("favor", "want one of %s, with the policies auto and notes; got %.40q", strings.Join(policy.Favors(), ", "), q.Favor)
	}
	chosen, err := c.s.config.Policies(name, q.Favor)
	if err != nil {
		return nil, badField("policy", "it needs something that the daemon was started without")
	}
	config := c.tenant.config
	config.Policy = chosen.Policy
	if config.Summarizer == nil {
		config.Summarizer = config.Memory.Summarizer(config.Counter)
	}
	config.Memory = nil // it is used once
	return palimpsest.New(config)
}

// withSessions asks a handler about the sessions that agents left on this machine, which are for its user alone.
func withSessions(do func(*call, Sessions) (any, error)) handler {
	return func(c *call) (any, error) {
		if all := c.s.config.Sessions; c.s.config.Keys == nil && all != nil {
			return do(c, all)
		}
		return nil, problem(api.NotFound, "only a daemon without keys shows the sessions of agents, to the user of its machine")
	}
}

func listSessions(c *call, all Sessions) (any, error) {
	items, err := all.List(c.r.Context())
	return view.Sessions{Items: append([]view.Session{}, items...)}, err
}

// viewSession shows a session under the plan that compact would make.
func viewSession(c *call, all Sessions) (any, error) {
	var q api.Compact
	if err := c.decodeJSON(&q); err != nil {
		return nil, err
	}
	return all.View(c.r.Context(), c.r.PathValue("session"), &q)
}

// Sessions are the sessions that agents left on this machine. Implementations are
// safe for concurrent use.
type Sessions interface {
	// List lists them, the newest first.
	List(ctx context.Context) ([]view.Session, error)
	// View shows one under the plan that compact would make. The error of an unknown id
	// is an *api.Problem.
	View(ctx context.Context, id string, q *api.Compact) (*view.View, error)
}
