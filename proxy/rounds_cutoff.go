package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// canContinueCutOff reports whether an answer that is cut off for length may be continued here: if
// the policy is that of an agent loop which does so. Where the client has tools by the names of ours,
// their calls are the client's.
func (st *stepper) canContinueCutOff(x *received, d decision) bool {
	_, loop := policy.As[policy.Loop](st.options.Config.Policy)
	return loop && d.step.prepared != nil && !slices.ContainsFunc(d.step.parsed.Prompt.Tools, isOurDeclaration) && x.endpoint.dialect.CanReadAnswer(x.request, d.step.parsed.Members)
}

// continuation is a further request after an answer that was cut off.
type continuation struct {
	decision
	hidden []thread.Message
}

// continueCutOff reports whether another round follows an answer that was cut off for length: if a
// compaction is due with it, and makes the request smaller. Else the client gets the answer as it
// came.
func (r *rounds) continueCutOff(a wire.Answer) bool {
	if !r.canContinue || a.Stop != wire.StopLength && a.Stop != wire.StopContext || r.number >= r.t.options.Rounds-1 {
		return false
	}
	next, err := failsafe.Within(r.x.request.Context(), r.t.options.Deadline, func(ctx context.Context) (continuation, error) {
		after, err := r.step.session.CutOffMessages(ctx, r.step.prepared, r.withCallIDs(a.Message, false))
		if err != nil {
			return continuation{}, err
		}
		further := *r
		further.hidden = append(slices.Clip(r.hidden), after...)
		d, err := further.prepareRound(ctx)
		return continuation{d, further.hidden}, err
	})
	switch {
	case err != nil && !errors.Is(err, palimpsest.ErrMaxTokens):
		r.t.emitFault(r.x, "cut_off", err, r.step)
		return false
	case err != nil || next.action != Compacted || next.tokensSent >= next.tokensBefore:
		return false
	}
	r.hidden, r.continuation = next.hidden, &next.decision
	return true
}

// beginsCall reports whether an event of a stream begins a tool call, or is a part of one.
func beginsCall(e sse.Event) bool {
	v := gjson.Parse(e.Data)
	for _, path := range []string{"content_block.type", "item.type"} {
		if kind := v.Get(path).Str; strings.HasSuffix(kind, "tool_use") || strings.HasSuffix(kind, "_call") {
			return true
		}
	}
	return v.Get("choices.0.delta.tool_calls.0").Exists() || len(v.Get("candidates.0.content.parts.#.functionCall").Array()) > 0
}

// heldBackCalls are tool calls that wait for the end of their round. If the answer is cut off and
// another round follows, the client does not get them: the last one is not whole, and none was
// run.
type heldBackCalls struct {
	holding bool
	out     []byte
}

// holdOrPass returns what of an event's bytes goes to the client now.
func (w *heldBackCalls) holdOrPass(e sse.Event, out []byte) []byte {
	if !w.holding || isPrelude(e) {
		return out
	}
	w.out = append(w.out, out...)
	return nil
}

// startAtCall starts to hold back at the first call of a round.
func (w *heldBackCalls) startAtCall(e sse.Event, t dialect.Rewinder) {
	if !w.holding && beginsCall(e) {
		w.holding = true
		t.SavePosition()
	}
}

func (w *heldBackCalls) release() []byte {
	out := w.out
	*w = heldBackCalls{}
	return out
}
