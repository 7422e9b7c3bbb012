package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// findConversation finds the place in a log that a request continues (see package identify), and makes
// the fork that it begins.
func (cv *conversations) findConversation(ctx context.Context, x *received, r *parsedRequest) (identify.Place, error) {
	if r.isSummary {
		return cv.findSummaryFork(ctx, x, r)
	}
	at, err := identify.Find(r.base, r.Prompt.Messages, r.IDs, cv.knownLogs(ctx, x, r, true))
	switch {
	case err != nil:
		return at, err
	case at.Fork:
		return at, cv.forkLog(ctx, at.Log, at.Thread, at.Shared)
	case at.Thread == nil && r.client.Thread == "":
		cv.noteBeginning(ctx, r.client.Beginning(r.Request), at.Base)
	}
	if at.OpenLookups != nil {
		at.HasHidden = true
	}
	return at, nil
}

// findSummaryFork is the place of a request for a summary, in a fork of its own.
func (cv *conversations) findSummaryFork(ctx context.Context, x *received, r *parsedRequest) (identify.Place, error) {
	id := identify.SummaryLog(r.base, r.IDs)
	log, err := cv.log.Load(ctx, id)
	if err == nil && log.Len() == 0 {
		var about identify.Place
		if about, err = cv.findSummarized(ctx, x, r); err == nil && about.Thread != nil {
			err = cv.forkLog(ctx, id, about.Thread, about.Shared)
		}
	}
	if err != nil {
		return identify.Place{}, err
	}
	at, err := identify.Find(id, r.Prompt.Messages, r.IDs, identify.Logs{Load: logLoader(ctx, cv.log)})
	if err == nil && at.Fork {
		err = cv.forkLog(ctx, at.Log, at.Thread, at.Shared)
	}
	return at, err
}

// findSummarized is the place of the conversation that a request for a summary is about, also if the
// client left out its last turns to make the question fit.
func (cv *conversations) findSummarized(ctx context.Context, x *received, r *parsedRequest) (identify.Place, error) {
	n := len(r.IDs) - 1
	if n == 0 {
		return identify.Place{}, nil
	}
	return identify.Find(r.base, r.Prompt.Messages[:n], r.IDs[:n], cv.knownLogs(ctx, x, r, false))
}

func logLoader(ctx context.Context, log store.Log) func(string) (*thread.Thread, error) {
	return func(id string) (*thread.Thread, error) { return log.Load(ctx, id) }
}

// knownLogs is the access to the store that finds a place. claim says that open lookups at the place
// are taken up.
func (cv *conversations) knownLogs(ctx context.Context, x *received, r *parsedRequest, claim bool) identify.Logs {
	logs := identify.Logs{Load: logLoader(ctx, cv.log)}
	if claim {
		logs.ClaimLookups = cv.openLookups.claim
	}
	if r.client.Thread == "" {
		logs.BasesWithBeginning = func() []string { return cv.basesWithBeginning(ctx, r.client.Beginning(r.Request)) }
	}
	return logs
}

// forkLog begins a log with the first messages of its parent, and with the newest plan of the parent
// that is valid for them, so that the prefix stays as it is.
func (cv *conversations) forkLog(ctx context.Context, id string, parent *thread.Thread, shared int) error {
	log, err := cv.log.Append(ctx, id, 0, parent.Messages()[:shared])
	if err != nil {
		return err
	}
	_, version, err := cv.plans.Current(ctx, parent.ID())
	for ; err == nil && version > 0; version-- {
		var p *plan.Plan
		if p, err = cv.plans.Plan(ctx, parent.ID(), version); err != nil {
			break
		}
		inherited := *p
		inherited.ThreadID = id
		inherited.ThreadVersion = min(p.ThreadVersion, log.Version())
		inherited.Arrived = max(0, inherited.ThreadVersion-(p.ThreadVersion-p.Arrived)) // as many had been sent
		inherited.Edited = min(p.Edited, log.Version())
		if inherited.Validate(log) != nil {
			continue
		}
		if _, err = cv.plans.Commit(ctx, id, 0, store.Commit{Plan: &inherited}); errors.Is(err, store.ErrConflict) {
			err = nil // another request of the same fork has made it
		}
		break
	}
	return err
}

// maxBeginnings bounds the conversations that are known by one first message.
const maxBeginnings = 8

// beginningsIn are the conversations by their first message (identify.Client.Beginning), the latest
// first.
func beginningsIn(documents store.Documents) records[[]string] {
	return records[[]string]{documents: documents, kind: "proxy-beginning"}
}

// basesWithBeginning are the bases of conversations with a beginning, the latest first. If they cannot
// be read there are none, and the conversation is a new one.
func (cv *conversations) basesWithBeginning(ctx context.Context, beginning string) []string {
	found, err := cv.beginnings.get(ctx, beginning)
	if err != nil || found.value == nil {
		return nil
	}
	return *found.value
}

// noteBeginning notes the first message of a conversation. If that fails, a client that changes its
// system prompt is not recognised, and nothing else is wrong.
func (cv *conversations) noteBeginning(ctx context.Context, beginning, base string) {
	_, _, _ = cv.beginnings.change(ctx, beginning, func(now *[]string) *[]string {
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

// openLookups are the logs that end with lookups whose answer did not reach the client, and that no
// request is at work on. Only this process knows them: elsewhere the same request begins again, in
// a fork.
type openLookups struct {
	mu   sync.Mutex
	logs *lru.Cache[string, bool]
}

func (w *openLookups) add(log string) { w.logs.Put(log, true, 1) }

// claim takes a log, for one request only.
func (w *openLookups) claim(log string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	there, _ := w.logs.Get(log)
	w.logs.Delete(log)
	return there
}
