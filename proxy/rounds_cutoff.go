package proxy

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
)

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
