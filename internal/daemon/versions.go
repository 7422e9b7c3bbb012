package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// write is what a request says of the version it is for, and what became of it.
// The stores below find it in the context, so that the version that If-Match
// named is checked in one step with the write itself, whatever the front door
// read before.
type write struct {
	// ofLog and ofPlans are the versions that If-Match names; api.Any where it
	// names none.
	ofLog, ofPlans int

	// log is the log after the messages were added, first and n say where they
	// stand in it.
	log      *thread.Thread
	first, n int
}

type writeKey struct{}

// writing makes a context for a write of the call.
func (c *call) writing() (context.Context, *write) {
	w := &write{ofLog: api.Any, ofPlans: api.Any}
	if c.op.IfMatch == "version" {
		w.ofLog = c.version
	} else {
		w.ofPlans = c.version
	}
	return context.WithValue(c.r.Context(), writeKey{}, w), w
}

// staleError says that a request named another version than the one there is. It
// is no store.ErrConflict: trying again would not help.
type staleError struct{ want, have int }

func (e *staleError) Error() string {
	return fmt.Sprintf("If-Match names version %d, it is at %d", e.want, e.have)
}

// logs is the log of a tenant as the front door is given it.
type logs struct{ store.Log }

// Append implements store.Log. Messages go behind the version that the request
// named, else where the first of them stands already by its id, else to the end.
func (l logs) Append(ctx context.Context, threadID string, version int, messages []thread.Message) (*thread.Thread, error) {
	w, _ := ctx.Value(writeKey{}).(*write)
	if w == nil || w.log != nil || len(messages) == 0 {
		return l.Log.Append(ctx, threadID, version, messages)
	}
	log, err := l.Log.Load(ctx, threadID)
	if err != nil {
		return nil, err
	}
	first := version
	if w.ofLog != api.Any {
		first = w.ofLog
	} else if at, known := log.Index(messages[0].ID); known {
		first = at
	}
	if first > log.Version() {
		return nil, &staleError{want: first, have: log.Version()}
	}
	next, err := l.Log.Append(ctx, threadID, first, linked(log.Prefix(first), messages))
	if err != nil {
		// Behind a version of its own a write is tried once: what stands there is
		// something else.
		if now, loadErr := l.Log.Load(ctx, threadID); loadErr == nil && w.ofLog != api.Any && now.Version() != first {
			return nil, &staleError{want: first, have: now.Version()}
		}
		return nil, err
	}
	w.log, w.first, w.n = next, first, len(messages)
	return next, nil
}

// plans are the plans of a tenant as the front door is given them.
type plans struct {
	store.Plans
	tenant string
	hub    *hub
	now    func() time.Time
}

// Commit implements store.Plans. A change that tells nothing by itself, such as an
// undo, is told as what it is.
func (p plans) Commit(ctx context.Context, threadID string, expected int, c store.Commit) (int, error) {
	if w, ok := ctx.Value(writeKey{}).(*write); ok && w.ofPlans != api.Any && w.ofPlans != expected {
		return 0, &staleError{want: w.ofPlans, have: expected}
	}
	if len(c.Events) == 0 {
		c.Events = []event.Event{{
			Type: event.PlanCommitted, Time: p.now().UTC(), ThreadID: threadID, TenantID: p.tenant, Details: map[string]any{"version": expected + 1},
		}}
	}
	version, err := p.Plans.Commit(ctx, threadID, expected, c)
	if err == nil {
		p.hub.wake(threadID)
	}
	return version, err
}
