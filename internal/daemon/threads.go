package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/describe"
	"github.com/palimpsest-ai/palimpsest/internal/glyph"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// labelsKind is the kind of document that holds what a thread was created with.
const labelsKind = "thread"

type threadLabels struct {
	Labels  map[string]string `json:"labels,omitempty"`
	Created time.Time         `json:"created_at"`
}

// threadCreated is the first event of a thread that was created by a call.
const threadCreated event.Type = "thread_created"

func createThread(c *call) (any, error) {
	var q api.NewThread
	if err := c.decodeJSON(&q); err != nil {
		return nil, err
	}
	q.ID = cmp.Or(q.ID, "thr_"+strings.ToLower(rand.Text()))
	if err := checkID(q.ID); err != nil {
		return nil, err
	}
	if err := checkLabels(q.Labels); err != nil {
		return nil, err
	}
	ctx := c.r.Context()
	made := threadLabels{Labels: q.Labels, Created: c.tenant.config.Now().UTC()}
	body, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	taken := problem(api.Exists, "there is a thread with this id; use it, or choose another id")
	if _, err := c.tenant.Catalog.Thread(ctx, q.ID); err == nil {
		return nil, taken
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if _, err := c.tenant.Documents.Put(ctx, store.Document{Kind: labelsKind, ID: q.ID, Body: body}); errors.Is(err, store.ErrConflict) {
		return nil, taken
	} else if err != nil {
		return nil, err
	}
	// The event is what makes the catalog list the thread.
	if err := c.tenant.Events.Record(ctx, event.Event{Type: threadCreated, Time: made.Created, ThreadID: q.ID, TenantID: c.tenant.name}); err != nil {
		return nil, err
	}
	c.w.Header().Set("Location", "/v1/threads/"+url.PathEscape(q.ID))
	c.setETag(0, 0)
	return api.Thread{ID: q.ID, Labels: q.Labels, CreatedAt: made.Created}, nil
}

// maxID is the longest id of a thread that can be created, in characters.
const maxID = 200

func checkID(id string) error {
	bad := slices.Contains([]string{".", "..", "/"}, id) || // no address leads to them
		!utf8.ValidString(id) || utf8.RuneCountInString(id) > maxID || strings.ContainsFunc(id, unicode.IsControl)
	if bad || store.CheckName("thread", id) != nil {
		return badField("id", "want 1 to %d characters and no control characters; \".\", \"..\" and \"/\" are not allowed", maxID)
	}
	return nil
}

func checkLabels(labels map[string]string) error {
	const most, longest = 32, 200
	if len(labels) > most {
		return badField("labels", "at most %d", most)
	}
	for name, value := range labels {
		if name == "" || len(name) > longest || len(value) > longest {
			return badField("labels", "a name has 1 to %d bytes, a value at most %d", longest, longest)
		}
	}
	return nil
}

// findThread returns the thread that the address names. One of another tenant does not
// exist for the caller.
func (c *call) findThread() (store.Info, error) {
	id := c.r.PathValue("thread")
	missing := problem(api.NotFound, "there is no such thread; POST /v1/threads creates one")
	if checkID(id) != nil && store.CheckName("thread", id) != nil {
		return store.Info{}, missing
	}
	info, err := c.tenant.Catalog.Thread(c.r.Context(), id)
	if errors.Is(err, store.ErrNotFound) {
		// A crash while the thread was created may have left its document only.
		if _, err = c.tenant.Documents.Document(c.r.Context(), labelsKind, id); errors.Is(err, store.ErrNotFound) {
			return info, missing
		}
		info.ID = id
	}
	return info, err
}

func listThreads(c *call) (any, error) {
	after, limit, err := c.pageQuery()
	if err != nil {
		return nil, err
	}
	ctx := c.r.Context()
	infos, err := c.tenant.Catalog.Threads(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	about := c.r.URL.Query().Get("about")
	if about != "" && about != "yes" {
		return nil, badField("about", "want yes, or leave it out; got %.40q", about)
	}
	page := api.Threads{Items: []api.Thread{}}
	for _, info := range infos {
		t, err := c.tenant.describe(ctx, info)
		if err != nil {
			return nil, err
		}
		if about != "" {
			if t.About, err = c.tenant.readAbout(ctx, info); err != nil {
				return nil, err
			}
		}
		page.Items = append(page.Items, *t)
	}
	if len(infos) == limit {
		page.Next = c.cursorAfter(infos[len(infos)-1].ID)
	}
	return page, nil
}

func (t *tenant) describe(ctx context.Context, info store.Info) (*api.Thread, error) {
	out := &api.Thread{ID: info.ID, CreatedAt: info.Created, ChangedAt: info.Changed, Version: info.Messages, PlanVersion: info.Plans}
	d, err := t.Documents.Document(ctx, labelsKind, info.ID)
	if errors.Is(err, store.ErrNotFound) {
		return out, nil // it began with a message, without labels
	}
	var made threadLabels
	if err == nil {
		err = json.Unmarshal(d.Body, &made)
	}
	out.Labels = made.Labels
	if !made.Created.IsZero() {
		out.CreatedAt = made.Created
	}
	return out, err
}

func (t *tenant) readAbout(ctx context.Context, info store.Info) (*view.About, error) {
	out := &view.About{}
	log, err := t.Log.Load(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	for _, m := range log.All() {
		if m.StartsTurn() {
			out.Title = glyph.Visible(clip.Line(describe.Message(m), 200))
			break
		}
	}
	p, _, err := t.Plans.Current(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	if p != nil {
		out.Compacted, out.Before, out.After = p.CreatedAt, p.OriginalTokens, p.CompactedTokens
	}
	step, err := t.lastStep(ctx, info.ID)
	if step.Base != nil {
		out.Model = glyph.Visible(step.Base.Model)
	}
	out.API = step.Profile.API
	return out, err
}

func getThread(c *call, info store.Info) (any, error) {
	t, err := c.tenant.describe(c.r.Context(), info)
	if err != nil {
		return nil, err
	}
	if c.tenant.config.Jobs != nil {
		if t.Compacting, err = c.tenant.config.Jobs.Busy(c.r.Context(), job.CompactKey(c.tenant.config.Domain, info.ID)); err != nil {
			return nil, err
		}
	}
	c.setETag(t.Version, t.PlanVersion)
	return t, nil
}

// deleteThread waits for a step or compaction at work, whose writes would come after it
// otherwise.
func deleteThread(c *call, info store.Info) (any, error) {
	err := c.tenant.compactors.delete(c.r.Context(), info.ID, func(ctx context.Context) error {
		if c.tenant.config.Jobs != nil {
			waiting, cancel := context.WithTimeout(ctx, deleteTimeout)
			defer cancel()
			err := c.tenant.config.Jobs.Wait(waiting, job.CompactKey(c.tenant.config.Domain, info.ID))
			if errors.Is(err, job.ErrAbandoned) {
				err = nil // its process is dead
			}
			if err != nil && waiting.Err() != nil && ctx.Err() == nil {
				return problem(api.Conflict, "a compaction of the thread is at work; try again")
			}
			if err != nil {
				return err
			}
		}
		// The thread goes last, so that a call that failed can be repeated.
		if err := proxy.Forget(ctx, c.tenant.Documents, info.ID); err != nil {
			return err
		}
		return c.tenant.Catalog.Delete(ctx, info.ID)
	})
	if err != nil {
		return nil, err
	}
	c.tenant.prepared.Delete([2]string{c.tenant.name, info.ID})
	c.tenant.searchCache.Forget(c.tenant.name, info.ID)
	c.tenant.hub.notify(info.ID) // its event streams end
	c.w.WriteHeader(c.op.Status)
	return answerWritten{}, nil
}

// deleteTimeout is how long a deletion waits for a running compaction: as long as a step
// does.
const deleteTimeout = 30 * time.Second

func readLog(c *call, info store.Info) (any, error) {
	log, err := c.tenant.Log.Load(c.r.Context(), info.ID)
	if err != nil {
		return nil, err
	}
	from, to, next, err := c.pageRange(log.Len())
	if err != nil {
		return nil, err
	}
	page := api.Log{Version: log.Version(), Items: []neutral.Message{}, Next: next}
	for i := from; i < to; i++ {
		page.Items = append(page.Items, neutral.MessageOf(log.At(i)))
	}
	c.setETag(log.Version())
	return page, nil
}

func appendMessages(c *call, info store.Info, q *api.Append) (any, error) {
	messages, err := messagesOf(q.Messages, "messages")
	if err != nil {
		return nil, err
	}
	if len(q.Body) > 0 || q.API != "" {
		p, err := decodeBody(q.API, q.Body)
		if err != nil {
			return nil, err
		}
		messages = append(p.Messages, messages...)
	}
	if len(messages) == 0 {
		return nil, problem(api.BadRequest, "there is nothing to append: send messages, or api and body")
	}
	appended, err := appendLinked(c, info.ID, messages)
	if err != nil {
		return nil, err
	}
	return answerAppended(c, appended), nil
}

func answerAppended(c *call, a palimpsest.Appended) api.Appended {
	out := api.Appended{Version: a.Log.Version(), MessageIDs: make([]string, a.N)}
	for i := range a.N {
		out.MessageIDs[i] = string(a.Log.At(a.First + i).ID)
	}
	c.setETag(out.Version)
	return out
}

func messagesOf(messages []neutral.Message, path string) ([]thread.Message, error) {
	var out []thread.Message
	for i := range messages {
		m, err := messages[i].Value(fmt.Sprintf("%s[%d]", path, i))
		if err != nil {
			return nil, err
		}
		if m.Kind == thread.Plain && ownformat.IsSummary(&m) {
			m.Kind = thread.Recap
		}
		out = append(out, m)
	}
	return out, nil
}
