package proxy

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
)

// This file says when a request is sent on as it came. What fails passes too (failopen.go), and so
// does what encodePrepared finds below its policy's mark.

// forward is the decision to send the client's own bytes.
func forward(reason string) decision { return decision{action: Passed, reason: reason} }

// mustShrinkSummary reports whether a request in which the client has its own history summed
// up must be made smaller: its conversation is under a plan, or the history comes near
// the window (the client keeps all that we have removed, and may not know). Else it
// passes as it is.
func (x *exchange) mustShrinkSummary(ctx context.Context, r *parsedRequest) (bool, error) {
	about, err := x.findSummarized(ctx, r)
	if err != nil {
		return false, err
	}
	if about.Thread != nil {
		current, _, err := store.CurrentUncopied(ctx, x.t.plans, about.Thread.ID(), uncopied.Key{})
		if err != nil || !current.Empty() {
			return true, err
		}
	}
	return r.model.Window > 0 && r.bytes/minBytesPerToken+outputReserve(r.model, r.Prompt) >= maxRequestTokens(r.model), nil
}

// isSmall reports whether a request is too small for any policy. Where the window is
// not known the automatic policy waits for the provider to refuse.
func (x *exchange) isSmall(ctx context.Context) bool {
	if x.request.Header.Get("Content-Encoding") != "" || x.request.Header.Get(ThreadHeader) != "" {
		return false
	}
	if a := x.emulation.responses; a != nil && a.emulated {
		return false
	}
	if h := x.emulation.providerState; h != nil && h.rebuilt != nil {
		return !h.rebuilt.mustReplaceBody && h.rebuilt.Log == "" && len(h.rebuilt.body) < alwaysSmall
	}
	if len(x.body) < alwaysSmall {
		return true
	}
	switch x.t.options.Config.Policy.(type) {
	case nil, policy.Auto:
		return x.model(ctx, x.modelName(nil)).Window == 0
	}
	return false
}

// alwaysSmall is the size of a body, in bytes, below which no policy is asked.
const alwaysSmall = 12 << 10
