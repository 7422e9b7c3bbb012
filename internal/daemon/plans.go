package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// currentPlan is the plan in force and its version, which the answer is tagged with.
func (c *call) currentPlan(id string) (api.Plan, error) {
	p, version, err := c.tenant.Plans.Current(c.r.Context(), id)
	if err == nil {
		c.setETag(version)
	}
	return api.Plan{Version: version, Plan: p}, err
}

func listPlans(c *call, info store.Info) (any, error) {
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

func readPlan(c *call, info store.Info) (any, error) {
	name := c.r.PathValue("version")
	if name == "current" {
		current, err := c.currentPlan(info.ID)
		if err == nil && current.Plan == nil {
			err = problem(api.NotFound, "no plan is in force: the model gets every message as it was said")
		}
		return current, err
	}
	version, err := strconv.Atoi(name)
	if err != nil || version < 1 {
		return nil, problem(api.NotFound, "plans are numbered from 1; \"current\" is the one in force")
	}
	p, err := c.tenant.planAt(c.r.Context(), info.ID, version)
	if err != nil {
		return nil, err
	}
	c.setETag(version)
	return api.Plan{Version: version, Plan: p}, nil
}

func diffPlans(c *call, info store.Info) (any, error) {
	from, old, err := queryPlan(c, info.ID, "from", 0)
	if err != nil {
		return nil, err
	}
	to, new, err := queryPlan(c, info.ID, "to", info.Plans)
	if err != nil {
		return nil, err
	}
	return api.Diff{From: from, To: to, Changes: append([]plan.Change{}, plan.Diff(old, new)...)}, nil
}

// queryPlan reads the version of a plan in the query, and the plan: an empty one for 0.
func queryPlan(c *call, id, name string, missing int) (int, *plan.Plan, error) {
	version, err := c.queryNumber(name, missing, 0, math.MaxInt)
	if err != nil {
		return 0, nil, err
	}
	p, err := c.tenant.planAt(c.r.Context(), id, version)
	return version, cmp.Or(p, &plan.Plan{}), err
}

func undoPlan(c *call, info store.Info, q *api.Undo) (any, error) {
	if q.Version == nil || *q.Version < 0 {
		return nil, badField("version", "want the version of the plan to go back to, or 0 for none")
	}
	if _, err := c.tenant.planAt(c.r.Context(), info.ID, *q.Version); err != nil {
		return nil, err
	}
	return answerChanged(c, info.ID, c.session(info.ID).Undo(c.r.Context(), *q.Version))
}

func expandMessage(c *call, info store.Info, q *api.Expand) (any, error) {
	if q.MessageID == "" {
		return nil, badField("message_id", "want the id of a message that the plan in force hides")
	}
	err := c.session(info.ID).Expand(c.r.Context(), thread.ID(q.MessageID))
	if errors.Is(err, store.ErrNotFound) {
		err = problemAt(api.NotFound, "message_id", "the plan in force hides no message %.80q", q.MessageID)
	}
	return answerChanged(c, info.ID, err)
}

// pinMessage protects a message from all later plans, or releases it.
func pinMessage(c *call, info store.Info, q *view.Pin) (any, error) {
	if q.MessageID == "" {
		return nil, badField("message_id", "want the id of a message")
	}
	err := c.session(info.ID).Pin(c.r.Context(), thread.ID(q.MessageID), !q.Free)
	if errors.Is(err, thread.ErrUnknownID) {
		err = problemAt(api.NotFound, "message_id", "the thread has no message %.80q", q.MessageID)
	}
	return answerChanged(c, info.ID, err)
}

// The most that one call may add to a memory block: it stands in every prompt.
const (
	maxEntries = 100
	maxEntry   = 4_000 // bytes
)

func addMemory(c *call, info store.Info, q *api.Remember) (any, error) {
	if len(q.Entries) < 1 || len(q.Entries) > maxEntries {
		return nil, badField("entries", "want 1 to %d", maxEntries)
	}
	for i, entry := range q.Entries {
		if strings.TrimSpace(entry) == "" || len(entry) > maxEntry {
			path := fmt.Sprintf("entries[%d]", i)
			return nil, badField(path, "want a text of at most %d bytes", maxEntry)
		}
	}
	return answerChanged(c, info.ID, c.session(info.ID).Remember(c.r.Context(), q.Entries...))
}

// answerChanged answers with the plan in force after a change of it, unless that failed.
func answerChanged(c *call, id string, failed error) (any, error) {
	if failed != nil {
		return nil, failed
	}
	return c.currentPlan(id)
}
