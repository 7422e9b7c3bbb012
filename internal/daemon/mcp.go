package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/mcp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// MCP says what agents may do by the Model Context Protocol.
type MCP int

// The values of MCP. To write, an agent needs the right of its key too.
const (
	NoMCP MCP = iota
	ReadMCP
	WriteMCP
)

// answerMCP answers an agent, whose key and limits are those of any operation.
func answerMCP(c *call) (any, error) {
	body, err := c.readBody(mcp.MaxMessage)
	if err != nil {
		return nil, err
	}
	if !rawjson.Valid(body) {
		return nil, problem(api.BadRequest, "the body is not one JSON document")
	}
	if err := countBatch(c, body); err != nil {
		return nil, err
	}
	c.r.Body = io.NopCloser(bytes.NewReader(body))
	c.w.Header().Set("Cache-Control", "no-store")
	mcp.New(&threadSessions{c}, &mcp.Options{
		ContextTools: c.tenant.config.Recall != nil && c.tenant.config.Recall.ContextTools,
		Version:      c.s.config.Version, Write: c.s.config.MCP == WriteMCP && c.who.rights.Has(apikey.Write),
		Count: c.tenant.config.Counter.Text, Memory: c.tenant.searchCache, Scope: c.tenant.name,
	}).ServeHTTP(c.w, c.r)
	return answerWritten{}, nil
}

// maxBatch bounds the messages of a batch, and so what its answers take together: one takes at
// most about 100 KB.
const maxBatch = 20

// countBatch counts each message of a batch as a request.
func countBatch(c *call, body []byte) error {
	batch := gjson.ParseBytes(body)
	if !batch.IsArray() {
		return nil
	}
	limits, n := c.s.config.Limits, int(batch.Get("#").Int())
	most := min(maxBatch, limits.Burst)
	if limits.TenantRate > 0 {
		most = min(most, c.s.access.tenantRates.burst)
	}
	if n > most {
		return problem(api.BadRequest, "a batch of %d messages; at most %d are answered at once", n, most)
	}
	return c.s.access.countMore(c.r, c.who, max(0, n-1))
}

// threadSessions are the threads of a caller's tenant, as mcp.Sessions.
type threadSessions struct{ *call }

// publicError is an error as the caller may see it.
func publicError(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(problemOf(err).Detail)
}

func (t *threadSessions) List(ctx context.Context) ([]mcp.Session, error) {
	infos, err := care.AllThreads(ctx, t.tenant.Catalog)
	if errors.Is(err, store.ErrErased) {
		t.tenant.searchCache.Forget(t.tenant.name, "")
	}
	if err != nil {
		return nil, publicError(err)
	}
	var all []mcp.Session
	for _, info := range infos {
		all = append(all, mcp.SessionOfThread(info))
	}
	slices.SortStableFunc(all, mcp.CompareNewest)
	return all, nil
}

func (t *threadSessions) Open(ctx context.Context, id string) (*mcp.Conversation, error) {
	log, err := t.tenant.Log.Load(ctx, id)
	if err != nil {
		return nil, publicError(err)
	}
	c := &mcp.Conversation{Log: log}
	c.Plan, c.Version, err = t.tenant.Plans.Current(ctx, id)
	return c, publicError(err)
}

func (t *threadSessions) Artifact(ctx context.Context, id string) (rehydrate.Content, error) {
	m, text, err := t.tenant.config.Artifacts.Get(ctx, t.requester(), id)
	return rehydrate.ContentOf(m, text), err
}

func (t *threadSessions) Compact(ctx context.Context, id string, budget int, keep bool) (*mcp.Compaction, error) {
	if budget == 0 {
		return nil, errors.New("budget: a thread names no model; say how many tokens the request may take")
	}
	log, err := t.tenant.Log.Load(ctx, id)
	if err != nil {
		return nil, publicError(err)
	}
	last, err := t.tenant.lastStep(ctx, id)
	if err != nil {
		return nil, publicError(err)
	}
	// What the agent sends around the messages is a part of the request.
	step := palimpsest.Step{Base: &prompt.Prompt{}, Budget: budget, Profile: render.For("")}
	if last.Base != nil {
		step.Base, step.Fixed, step.Profile = last.Base, last.Fixed, last.Profile
	}
	compactor := t.tenant.compactorBy(ctx, id, t.who.rights)
	session := compactor.Session(id)
	made := &mcp.Compaction{Log: log, Budget: budget}
	if keep {
		made.Plan, err = session.Compact(ctx, step, "")
		made.StoredIn = "the daemon's store"
	} else {
		made.Plan, err = session.Plan(ctx, step)
	}
	if errors.Is(err, policy.ErrNothing) {
		current, _, err := t.tenant.Plans.Current(ctx, id)
		if err != nil {
			return nil, publicError(err)
		}
		as, err := compactor.Render(current, renderRequest(log, step))
		if err != nil {
			return nil, publicError(err)
		}
		return &mcp.Compaction{Log: log, Plan: &plan.Plan{}, Budget: budget, Before: as.Before, After: as.After}, nil
	}
	if err != nil {
		return nil, publicError(err)
	}
	made.Before, made.After = made.Plan.OriginalTokens, made.Plan.CompactedTokens
	return made, nil
}
