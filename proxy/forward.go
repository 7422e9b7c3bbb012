package proxy

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/policy"
)

// This file says which requests are forwarded without a look at their conversation. Failures
// forward them too (failopen.go), and so does encodePrepared below its policy's mark.

// forward is the decision to send the client's own bytes.
func forward(reason string) decision { return decision{action: Passed, reason: reason} }

// mustShrinkSummary reports whether a client's request for a summary of its own history must be
// made smaller: the conversation has a plan, or the history comes near the window. The client
// has all that we removed, and cannot know how long its history is.
func (st *stepper) mustShrinkSummary(ctx context.Context, x *received, r *parsedRequest) (bool, error) {
	about, err := st.conversations.findSummarized(ctx, x, r)
	if err != nil {
		return false, err
	}
	if about.Thread != nil {
		current, _, err := st.conversations.plans.Current(ctx, about.Thread.ID())
		if err != nil || !current.Empty() {
			return true, err
		}
	}
	answer := outputReserve(r.model, r.Prompt)
	return r.model.Window > 0 && r.bytes/minBytesPerToken+answer >= r.model.WindowBeside(answer), nil
}

// isSmall reports whether a request is too small for any policy. With an unknown window the
// automatic policy waits for the provider to refuse one; from then on the requests for the model are
// looked at, since their conversations may have a plan.
func (st *stepper) isSmall(ctx context.Context, x *received) bool {
	if x.request.Header.Get("Content-Encoding") != "" || x.request.Header.Get(ThreadHeader) != "" || x.managed {
		return false
	}
	if h := x.held; h != nil && h.rebuilt != nil {
		return !h.rebuilt.mustReplaceBody && h.rebuilt.Log == "" && len(h.rebuilt.body) < alwaysSmall
	}
	if len(x.body) < alwaysSmall {
		return true
	}
	switch st.options.Config.Policy.(type) {
	case nil, policy.Auto:
		return st.models.hasNoLimit(ctx, x, x.modelName(nil))
	}
	return false
}

// alwaysSmall is the size of a body, in bytes, below which no policy is asked.
const alwaysSmall = 12 << 10
