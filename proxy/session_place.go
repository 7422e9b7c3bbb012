package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// findConversation finds where a request goes on (see package identify), and makes the fork that
// it begins.
func (x *exchange) findConversation(ctx context.Context, r *parsedRequest) (identify.Place, error) {
	if r.isSummary {
		return x.findSummaryFork(ctx, r)
	}
	at, err := identify.Find(r.base, r.Prompt.Messages, r.IDs, x.knownLogs(ctx, r, true))
	switch {
	case err != nil:
		return at, err
	case at.Fork:
		return at, x.t.forkLog(ctx, at.Log, at.Thread, at.Shared)
	case at.Thread == nil && r.client.Thread == "":
		x.t.noteBeginning(ctx, r.client.Beginning(r.Request), at.Base)
	}
	if at.OpenLookups != nil {
		at.HasHidden = true
	}
	return at, nil
}

// findSummaryFork is the place of a request for a summary: in a fork of its own.
func (x *exchange) findSummaryFork(ctx context.Context, r *parsedRequest) (identify.Place, error) {
	id := identify.SummaryLog(r.base, r.IDs)
	log, err := x.t.log.Load(ctx, id)
	if err == nil && log.Len() == 0 {
		var about identify.Place
		if about, err = x.findSummarized(ctx, r); err == nil && about.Thread != nil {
			err = x.t.forkLog(ctx, id, about.Thread, about.Shared)
		}
	}
	if err != nil {
		return identify.Place{}, err
	}
	at, err := identify.Find(id, r.Prompt.Messages, r.IDs, identify.Logs{Load: x.logLoader(ctx)})
	if err == nil && at.Fork {
		err = x.t.forkLog(ctx, at.Log, at.Thread, at.Shared)
	}
	return at, err
}

// findSummarized is the place of the conversation that a request for a summary is about. A client
// that leaves out its last turns, so that its question fits, still asks about the
// same.
func (x *exchange) findSummarized(ctx context.Context, r *parsedRequest) (identify.Place, error) {
	n := len(r.IDs) - 1
	if n == 0 {
		return identify.Place{}, nil
	}
	return identify.Find(r.base, r.Prompt.Messages[:n], r.IDs[:n], x.knownLogs(ctx, r, false))
}

func (x *exchange) logLoader(ctx context.Context) func(string) (*thread.Thread, error) {
	return func(id string) (*thread.Thread, error) { return x.t.log.Load(ctx, id) }
}

// knownLogs are what is asked of the store to find a place; takeUp says that lookups which
// wait for the model may be taken up.
func (x *exchange) knownLogs(ctx context.Context, r *parsedRequest, takeUp bool) identify.Logs {
	logs := identify.Logs{Load: x.logLoader(ctx)}
	if takeUp {
		logs.ClaimLookups = x.t.openLookups.claim
	}
	if r.client.Thread == "" {
		logs.BasesWithBeginning = func() []string { return x.t.basesWithBeginning(ctx, r.client.Beginning(r.Request)) }
	}
	return logs
}

// forkLog begins a log with what two histories share, and with the newest plan of
// the parent that still holds for it, so that the prefix stays as it is.
func (t *Transport) forkLog(ctx context.Context, id string, parent *thread.Thread, kept int) error {
	log, err := t.log.Append(ctx, id, 0, uncopied.Messages(parent)[:kept])
	if err != nil {
		return err
	}
	_, version, err := store.CurrentUncopied(ctx, t.plans, parent.ID(), uncopied.Key{})
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

// basesWithBeginning are the bases of conversations with a beginning, the latest first. Where they
// cannot be read there are none: the conversation is a new one then.
func (t *Transport) basesWithBeginning(ctx context.Context, beginning string) []string {
	found, err := t.beginnings.get(ctx, beginning)
	if err != nil || found.value == nil {
		return nil
	}
	return *found.value
}

// noteBeginning notes the first message of a conversation. Where that fails a client that changes its
// system prompt on the way is not known again; nothing else depends on it.
func (t *Transport) noteBeginning(ctx context.Context, beginning, base string) {
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

// openLookups are the logs that end with lookups whose answer did not reach the client,
// and that nobody works on. It is known in this process alone: elsewhere the same
// request begins anew, in a fork.
type openLookups struct {
	mu   sync.Mutex
	logs *lru.Cache[string, bool]
}

func (w *openLookups) add(log string) { w.logs.Put(log, true, 1) }

// claim takes a log, for one request alone.
func (w *openLookups) claim(log string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	there, _ := w.logs.Get(log)
	w.logs.Delete(log)
	return there
}
