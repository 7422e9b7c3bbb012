package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// answerCurrentPlan answers with the plan in force and its version.
func (c *call) answerCurrentPlan(id string) (any, error) {
	p, version, err := c.tenant.Plans.Current(c.r.Context(), id)
	if err != nil {
		return nil, err
	}
	c.setETag(version)
	return api.Plan{Version: version, Plan: p}, nil
}

func (c *call) plans(info store.Info) (any, error) {
	after, end, next, err := c.pageRange(info.Plans)
	if err != nil {
		return nil, err
	}
	page := api.Plans{Current: info.Plans, Items: []api.PlanInfo{}, Next: next}
	for v := after + 1; v <= end; v++ {
		p, err := c.tenant.Plans.Plan(c.r.Context(), info.ID, v)
		if err != nil {
			return nil, err
		}
		page.Items = append(page.Items, planInfo(v, p))
	}
	c.setETag(info.Plans)
	return page, nil
}

func planInfo(version int, p *plan.Plan) api.PlanInfo {
	info := api.PlanInfo{
		Version: version, CreatedAt: p.CreatedAt, ThreadVersion: p.ThreadVersion, Policy: p.Policy,
		Records: map[string]int{}, OriginalTokens: p.OriginalTokens, CompactedTokens: p.CompactedTokens,
	}
	for _, ref := range p.Refs() {
		info.Records[ref.Action.String()]++
	}
	return info
}

func (c *call) plan(info store.Info) (any, error) {
	name := c.r.PathValue("version")
	if name == "current" {
		answer, err := c.answerCurrentPlan(info.ID)
		if p, ok := answer.(api.Plan); ok && p.Plan == nil {
			return nil, problem(api.NotFound, "no plan is in force: the model gets every message as it was said")
		}
		return answer, err
	}
	version, err := strconv.Atoi(name)
	if err != nil || version < 1 {
		return nil, problem(api.NotFound, "plans are numbered from 1; \"current\" is the one in force")
	}
	p, err := c.planAt(info.ID, version)
	if err != nil {
		return nil, err
	}
	c.setETag(version)
	return api.Plan{Version: version, Plan: p}, nil
}

func (c *call) diff(info store.Info) (any, error) {
	from, old, err := c.queryPlan(info.ID, "from", 0)
	if err != nil {
		return nil, err
	}
	to, new, err := c.queryPlan(info.ID, "to", info.Plans)
	if err != nil {
		return nil, err
	}
	return api.Diff{From: from, To: to, Changes: append([]plan.Change{}, plan.Diff(old, new)...)}, nil
}

// queryPlan reads the version of a plan in the query, and the plan: an empty one for 0.
func (c *call) queryPlan(id, name string, missing int) (int, *plan.Plan, error) {
	version, err := c.queryNumber(name, missing, 0, math.MaxInt)
	if err != nil {
		return 0, nil, err
	}
	p, err := c.planAt(id, version)
	return version, cmp.Or(p, &plan.Plan{}), err
}

func (c *call) undo(info store.Info, q *api.Undo) (any, error) {
	if q.Version == nil || *q.Version < 0 {
		return nil, badField("version", "want the version of the plan to go back to, or 0 for none")
	}
	if _, err := c.planAt(info.ID, *q.Version); err != nil {
		return nil, err
	}
	return c.changePlan(info.ID, func(ctx context.Context, s *palimpsest.Session) error { return s.Undo(ctx, *q.Version) })
}

func (c *call) expand(info store.Info, q *api.Expand) (any, error) {
	if q.MessageID == "" {
		return nil, badField("message_id", "want the id of a message that the plan in force hides")
	}
	answer, err := c.changePlan(info.ID, func(ctx context.Context, s *palimpsest.Session) error { return s.Expand(ctx, thread.ID(q.MessageID)) })
	if errors.Is(err, store.ErrNotFound) {
		err = problemAt(api.NotFound, "message_id", "the plan in force hides no message with this id")
	}
	return answer, err
}

// The most that one call may add to a memory block: it stands in every prompt.
const (
	maxEntries = 100
	maxEntry   = 4_000 // bytes
)

func (c *call) remember(info store.Info, q *api.Remember) (any, error) {
	if len(q.Entries) < 1 || len(q.Entries) > maxEntries {
		return nil, badField("entries", "want 1 to %d", maxEntries)
	}
	for i, entry := range q.Entries {
		if strings.TrimSpace(entry) == "" || len(entry) > maxEntry {
			path := fmt.Sprintf("entries[%d]", i)
			return nil, badField(path, "want a text of at most %d bytes", maxEntry)
		}
	}
	return c.changePlan(info.ID, func(ctx context.Context, s *palimpsest.Session) error { return s.Remember(ctx, q.Entries...) })
}

// changePlan has a session change the plan in force, and answers with the new one.
func (c *call) changePlan(id string, do func(context.Context, *palimpsest.Session) error) (any, error) {
	return c.changePlanBy(id, c.session(id), do)
}

func (c *call) changePlanBy(id string, s *palimpsest.Session, do func(context.Context, *palimpsest.Session) error) (any, error) {
	if err := do(c.r.Context(), s); err != nil {
		return nil, err
	}
	return c.answerCurrentPlan(id)
}
