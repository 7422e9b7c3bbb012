package identify

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// A history can continue another log than its own: its client has summarized it, or cut its old results.
// What the history lost can be found there.

// HasRecap reports whether a history begins with a summary by the client.
func HasRecap(messages []thread.Message) bool {
	return slices.ContainsFunc(messages[:min(len(messages), 3)], func(m thread.Message) bool { return m.Kind == thread.Recap })
}

// CallKeys name the tool calls in messages, in order: by their ids, which some providers count anew
// in every conversation, and by what they call. Calls without an id of the provider's have no name.
func CallKeys(messages []thread.Message) []string {
	var keys []string
	for i := range messages {
		for _, c := range messages[i].Calls() {
			if !thread.IsLocalID(c.ID) {
				keys = append(keys, canonjson.Digest(c.ID, c.Name, c.Arguments))
			}
		}
	}
	return keys
}

// LacksCall reports whether a history does not have the first tool call of another log behind what
// both begin with: its client has taken it out. What only the log has seen does not count.
func LacksCall(log *thread.Thread, messages []thread.Message, ids []thread.ID) bool {
	n := 0
	for ; n < min(log.Len(), len(ids)) && log.At(n).ID == ids[n]; n++ {
	}
	for ; n < log.Len(); n++ {
		m := log.At(n)
		if first := CallKeys([]thread.Message{*m}); len(first) > 0 && !isHidden(m.ID) {
			return !slices.Contains(CallKeys(messages), first[0])
		}
	}
	return false
}

// isShortened reports whether a history parts from a log at a result that the client has cut.
func isShortened(log *thread.Thread, m match, messages []thread.Message) bool {
	if m.shared >= log.Len() || m.logged >= len(messages) {
		return false
	}
	was, ok := log.At(m.shared).Result()
	if !ok {
		return false
	}
	is, ok := messages[m.logged].Result()
	return ok && is.CallID == was.CallID && len(is.Text()) < len(was.Text())
}
