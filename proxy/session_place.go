package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// place finds where a request goes on (see package identify), and makes the fork that
// it begins.
func (x *exchange) place(ctx context.Context, r *reading) (identify.Place, error) {
	if r.summary {
		return x.placeSummary(ctx, r)
	}
	at, err := identify.Find(r.base, r.Prompt.Messages, r.IDs, x.logs(ctx, r, true))
	switch {
	case err != nil:
		return at, err
	case at.Fork:
		return at, x.t.fork(ctx, at.Log, at.Of, at.At)
	case at.Of == nil && r.client.Thread == "":
		x.t.began(ctx, r.client.Beginning(r.Request), at.Base)
	}
	if at.Open != nil {
		at.Changed = true
	}
	return at, nil
}

// placeSummary is the place of a request for a summary: in a fork of its own.
func (x *exchange) placeSummary(ctx context.Context, r *reading) (identify.Place, error) {
	id := identify.SummaryLog(r.base, r.IDs)
	log, err := x.t.log.Load(ctx, id)
	if err == nil && log.Len() == 0 {
		var about identify.Place
		if about, err = x.about(ctx, r); err == nil && about.Of != nil {
			err = x.t.fork(ctx, id, about.Of, about.At)
		}
	}
	if err != nil {
		return identify.Place{}, err
	}
	at, err := identify.Find(id, r.Prompt.Messages, r.IDs, identify.Logs{Load: x.loader(ctx)})
	if err == nil && at.Fork {
		err = x.t.fork(ctx, at.Log, at.Of, at.At)
	}
	return at, err
}

// about is the place of the conversation that a request for a summary is about. A client
// that leaves out its last turns, so that its question fits, still asks about the
// same.
func (x *exchange) about(ctx context.Context, r *reading) (identify.Place, error) {
	n := len(r.IDs) - 1
	if n == 0 {
		return identify.Place{}, nil
	}
	return identify.Find(r.base, r.Prompt.Messages[:n], r.IDs[:n], x.logs(ctx, r, false))
}

func (x *exchange) loader(ctx context.Context) func(string) (*thread.Thread, error) {
	return func(id string) (*thread.Thread, error) { return x.t.log.Load(ctx, id) }
}

// logs are what is asked of the store to find a place; takeUp says that lookups which
// wait for the model may be taken up.
func (x *exchange) logs(ctx context.Context, r *reading, takeUp bool) identify.Logs {
	logs := identify.Logs{Load: x.loader(ctx)}
	if takeUp {
		logs.Waits = x.t.waiting.claim
	}
	if r.client.Thread == "" {
		logs.Others = func() []string { return x.t.others(ctx, r.client.Beginning(r.Request)) }
	}
	return logs
}

// fork begins a log with what two histories share, and with the newest plan of
// the parent that still holds for it, so that the prefix stays as it is.
func (t *Transport) fork(ctx context.Context, id string, parent *thread.Thread, kept int) error {
	log, err := t.log.Append(ctx, id, 0, uncopied.Messages(parent)[:kept])
	if err != nil {
		return err
	}
	_, version, err := store.CurrentUncopied(ctx, t.plans, parent.ID(), permit.Key{})
	for ; err == nil && version > 0; version-- {
		var p *plan.Plan
		if p, err = t.plans.Plan(ctx, parent.ID(), version); err != nil {
			break
		}
		inherited := *p
		inherited.ThreadID = id
		inherited.ThreadVersion = min(p.ThreadVersion, log.Version())
		if inherited.Validate(log) != nil {
			continue
		}
		if _, err = t.plans.Commit(ctx, id, 0, store.Commit{Plan: &inherited}); errors.Is(err, store.ErrConflict) {
			err = nil // another request of the same fork has made it
		}
		break
	}
	return err
}

// maxBeginnings bounds how many conversations are known that begin with one message.
const maxBeginnings = 8

// beginningsIn list the conversations which begin with a message, the latest first, by what
// identify.Client.Beginning says.
func beginningsIn(documents store.Documents) records[[]string] {
	return records[[]string]{documents: documents, kind: "proxy-beginning"}
}

// others are the bases of conversations with a beginning, the latest first. Where they
// cannot be read there are none: the conversation is a new one then.
func (t *Transport) others(ctx context.Context, beginning string) []string {
	found, err := t.beginnings.get(ctx, beginning)
	if err != nil || found.value == nil {
		return nil
	}
	return *found.value
}

// began notes that a conversation begins so. Where that fails a client that changes its
// system prompt on the way is not known again; nothing else depends on it.
func (t *Transport) began(ctx context.Context, beginning, base string) {
	_, _, _ = t.beginnings.change(ctx, beginning, func(now *[]string) *[]string {
		bases := []string{base}
		if now != nil {
			if slices.Contains(*now, base) {
				return now
			}
			bases = append(bases, *now...)
		}
		bases = bases[:min(len(bases), maxBeginnings)]
		return &bases
	})
}

// waiting are the logs that end with lookups whose answer did not reach the client,
// and that nobody works on. It is known in this process alone: elsewhere the same
// request begins anew, in a fork.
type waiting struct {
	mu   sync.Mutex
	logs *lru.Cache[string, bool]
}

func (w *waiting) add(log string) { w.logs.Put(log, true, 1) }

// claim takes a log, for one request alone.
func (w *waiting) claim(log string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	there, _ := w.logs.Get(log)
	w.logs.Delete(log)
	return there
}
