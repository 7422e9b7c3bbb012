package daemon

import (
	"errors"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// requester is with whose rights artifacts are read.
func (c *call) requester() artifact.Requester { return artifact.Requester{TenantID: c.tenant.name} }

func listArtifacts(c *call, info store.Info) (any, error) {
	after, limit, err := c.pageQuery()
	if err != nil {
		return nil, err
	}
	page := api.Artifacts{Items: []artifact.Metadata{}}
	for m, err := range c.tenant.config.Artifacts.List(c.r.Context(), c.requester(), artifact.Filter{ThreadID: info.ID}) {
		if errors.Is(err, artifact.ErrCorrupt) {
			continue // a request for it says so
		}
		if err != nil {
			return nil, err
		}
		if m.ID <= after {
			continue
		}
		if len(page.Items) == limit {
			page.Next = c.cursorAfter(page.Items[limit-1].ID)
			break
		}
		page.Items = append(page.Items, m)
	}
	return page, nil
}

// findArtifact reads the artifact that the address names. One of another thread counts
// as missing.
func findArtifact(c *call, read func(id string) (artifact.Metadata, error)) (artifact.Metadata, error) {
	info, err := c.findThread()
	if err != nil {
		return artifact.Metadata{}, err
	}
	name := c.r.PathValue("artifact")
	missing := problem(api.NotFound, "the thread has no such artifact; GET …/artifacts lists those that it has")
	if !artifact.IsID(name) {
		return artifact.Metadata{}, missing
	}
	m, err := read(name)
	if errors.Is(err, artifact.ErrNotFound) || err == nil && m.ThreadID != info.ID {
		err = missing
	}
	return m, err
}

func describeArtifact(c *call) (any, error) {
	return findArtifact(c, func(id string) (artifact.Metadata, error) {
		return c.tenant.config.Artifacts.Metadata(c.r.Context(), c.requester(), id)
	})
}

func readArtifact(c *call) (any, error) {
	var content string
	m, err := findArtifact(c, func(id string) (m artifact.Metadata, err error) {
		m, content, err = c.tenant.config.Artifacts.Get(c.r.Context(), c.requester(), id)
		return m, err
	})
	if err != nil {
		return nil, err
	}
	// Tools wrote it: a browser must not show it as a page.
	c.w.Header().Set("Content-Security-Policy", "sandbox")
	c.w.Header().Set("Content-Disposition", "attachment")
	return textAnswer{content: content, mediaType: m.MediaType}, nil
}

// answerTool answers a model's call of a tool that prompts offer.
func answerTool(c *call, info store.Info, q *neutral.Part) (any, error) {
	asked, err := (&neutral.Message{Role: string(thread.Assistant), Parts: []neutral.Part{*q}}).Value("call")
	if err != nil {
		return nil, err
	}
	calls := asked.Calls()
	if len(calls) != 1 {
		return nil, badField("type", "want a part of type tool_call, as the model made it")
	}
	if name := calls[0].Name; name == notes.NoteTool || name == notes.CompactTool {
		if err := c.who.require(apikey.Write); err != nil {
			return nil, err
		}
	}
	result, ok, err := c.tenant.compactorBy(c.r.Context(), info.ID, c.who.rights).Session(info.ID).Answer(c.r.Context(), c.tenant.keptPrepared(info.ID), calls[0])
	if err == nil && !ok {
		err = problemAt(api.NotFound, "tool", "the daemon answers calls of read_artifact and recall, when its setting recall is tools, and with context-tools those of context_status, context_note and compact_now; run other tools yourself")
	}
	return neutral.MessageOf(&result), err
}

func searchThread(c *call, info store.Info) (any, error) {
	query := c.r.URL.Query()
	o := recall.Options{Tool: query.Get("tool"), Role: thread.Role(query.Get("role"))}
	const longest = 1000
	q := query.Get("q")
	if q == "" || len(q) > longest {
		return nil, badField("q", "want what to look for, in at most %d bytes", longest)
	}
	err := new(recall.Options).Check(q)
	if err != nil {
		return nil, badField("q", "%s", err)
	}
	if o.Limit, err = c.queryNumber("limit", 0, 1, 100); err != nil {
		return nil, err
	}
	switch o.Role {
	case "", thread.System, thread.User, thread.Assistant, thread.Tool:
	default:
		return nil, badField("role", "want system, user, assistant or tool, got %.40q", o.Role)
	}
	found, err := c.tenant.compactorBy(c.r.Context(), info.ID, c.who.rights).Session(info.ID).Recall(c.r.Context(), q, &o)
	if err != nil {
		return nil, err
	}
	return api.Hits{Items: append([]recall.Hit{}, found...)}, nil
}
