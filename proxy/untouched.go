package proxy

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
)

// This file says when a request is sent on untouched: where it is no question to a model, is too
// small, cannot be read, or is no step of a conversation. What fails passes too (guard.go), and so
// does what prepare.go finds below its policy's mark.

// pass sends the client's own bytes.
func pass(reason string) decision { return decision{action: Passed, reason: reason} }

// decide looks at a request and says what goes to the provider.
func (x *exchange) decide(ctx context.Context) (decision, error) {
	switch {
	case x.endpoint.task == count:
		return x.counted(ctx)
	case x.endpoint.task == compaction || x.native.settled:
		return pass("native"), nil
	case x.small(ctx):
		return pass("below-mark"), nil
	}
	r, reason, err := x.read(ctx)
	if err != nil {
		return decision{}, err
	}
	if r == nil {
		return pass(reason), nil
	}
	if reason != "" {
		x.t.lineage.passed(r.client.SessionID(), r.kind, r.size)
	}
	d := decision{action: Passed, reason: reason, read: r}
	switch r.kind {
	case identify.Step:
		return x.prepare(ctx, r, false)
	case identify.OwnCompaction:
		smaller, err := x.needsRoom(ctx, r)
		if err != nil || !smaller {
			return d, err
		}
		return x.prepare(ctx, r.toSummarize(), false)
	}
	return d, nil
}

// needsRoom reports whether a request in which the client has its own history summed
// up must be made smaller: its conversation is under a plan, or the history comes near
// the window (the client keeps all that we have removed, and may not know). Else it
// passes as it is.
func (x *exchange) needsRoom(ctx context.Context, r *reading) (bool, error) {
	about, err := x.about(ctx, r)
	if err != nil {
		return false, err
	}
	if about.Of != nil {
		current, _, err := store.CurrentUncopied(ctx, x.t.plans, about.Of.ID(), permit.Key{})
		if err != nil || !current.Empty() {
			return true, err
		}
	}
	return r.model.Window > 0 && r.size/leastBytes+output(r.model, r.Prompt) >= limit(r.model), nil
}

// small reports whether a request is too small for any policy. Where the window is
// not known the automatic policy waits for the provider to refuse.
func (x *exchange) small(ctx context.Context) bool {
	if x.request.Header.Get("Content-Encoding") != "" || x.request.Header.Get(ThreadHeader) != "" {
		return false
	}
	if a := x.native.asked; a != nil && a.emulated {
		return false
	}
	if h := x.native.state; h != nil && h.rebuilt != nil {
		return !h.rebuilt.strict && h.rebuilt.Log == "" && len(h.rebuilt.body) < smallAlways
	}
	if len(x.body) < smallAlways {
		return true
	}
	switch x.t.options.Config.Policy.(type) {
	case nil, policy.Auto:
		return x.model(ctx, x.modelName(nil)).Window == 0
	}
	return false
}

// smallAlways is the size of a body, in bytes, below which no policy is asked.
const smallAlways = 12 << 10
