package identify

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// A history can continue another log than its own: its client has summarized it, or cut its old results.
// What the history lost can be found there.

// HasRecap reports whether a history begins with a summary by the client.
func HasRecap(messages []thread.Message) bool {
	return slices.ContainsFunc(messages[:min(len(messages), 3)], func(m thread.Message) bool { return m.Kind == thread.Recap })
}

// RepeatsResult reports whether new messages have a tool result that another log has: a client that
// summarizes its history keeps the last results behind the summary.
func RepeatsResult(old *thread.Thread, news []thread.Message) bool {
	calls := map[string]bool{}
	for i := range news {
		if r, ok := news[i].Result(); ok && !thread.IsLocalID(r.CallID) {
			calls[r.CallID] = true
		}
	}
	if len(calls) == 0 {
		return false
	}
	for _, m := range uncopied.All(old) {
		if r, ok := m.Result(); ok && calls[r.CallID] {
			return true
		}
	}
	return false
}

// isShortened reports whether a history parts from a log at a result that the client has cut.
func isShortened(log *thread.Thread, m match, messages []thread.Message) bool {
	if m.shared >= log.Len() || m.logged >= len(messages) {
		return false
	}
	was, ok := uncopied.At(log, m.shared).Result()
	if !ok {
		return false
	}
	is, ok := messages[m.logged].Result()
	return ok && is.CallID == was.CallID && len(is.Text()) < len(was.Text())
}
