package palimpsest

import (
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// source returns the function that describes the source of a replayable result as it is
// now: Config.CurrentSource, else the tool's Capture, else another result in the log that
// was read from it later. It looks at each source once: a plan asks for the same one many
// times, which may be slow, and would contradict itself if the answers differed.
func (c *Compactor) source(t *thread.Thread) func(thread.ToolCall) (thread.Determinism, bool) {
	newest := sync.OnceValue(func() map[string]reading { return newestReadings(t) })
	type answer struct {
		now   thread.Determinism
		known bool
	}
	var mu sync.Mutex
	answers := map[[2]string]answer{}
	return func(call thread.ToolCall) (thread.Determinism, bool) {
		look := c.look(call)
		if look == nil {
			last, known := newest()[toolclass.Source(call)]
			return last.Determinism, known && last.call != call.ID // its own word proves nothing
		}
		mu.Lock()
		defer mu.Unlock()
		of := [2]string{call.Name, call.Arguments}
		a, asked := answers[of]
		if !asked {
			a.now, a.known = look(call)
			answers[of] = a
		}
		return a.now, a.known
	}
}

// look is what looks at the source of a call; nil where only the log can tell.
func (c *Compactor) look(call thread.ToolCall) func(thread.ToolCall) (thread.Determinism, bool) {
	if c.config.CurrentSource != nil {
		return c.config.CurrentSource
	}
	capture := c.config.Tools.Policy(call.Name).Capture
	if capture == nil {
		return nil
	}
	return func(call thread.ToolCall) (thread.Determinism, bool) {
		now, err := capture(call)
		return now, err == nil
	}
}

// reading is what a source looked like when a call read it.
type reading struct {
	thread.Determinism
	call string
}

// newestReadings are the last ones of each source. After a write, a command or the work of
// another agent nobody knows any more.
func newestReadings(t *thread.Thread) map[string]reading {
	newest, calls := map[string]reading{}, map[string]thread.ToolCall{}
	for _, m := range t.All() {
		for _, call := range m.Calls() {
			calls[call.ID] = call
			switch toolclass.ClassOf(call.Name) {
			case toolclass.Edit, toolclass.Write:
				delete(newest, toolclass.Source(call))
			case toolclass.Shell, toolclass.Agent:
				clear(newest)
			}
		}
		if r, ok := m.Result(); ok && r.Determinism != nil {
			if call, known := calls[r.CallID]; known {
				newest[toolclass.Source(call)] = reading{*r.Determinism, call.ID}
			}
		}
	}
	return newest
}

// captureSources fills in what the source of a result looks like now, where its tool can
// tell and the caller has not.
func captureSources(tools *toolpolicy.Registry, log *thread.Thread, messages []thread.Message) {
	var calls map[string]thread.ToolCall
	for i := range messages {
		r, ok := messages[i].Result()
		if !ok || r.Determinism != nil {
			continue
		}
		if calls == nil {
			calls = callsOf(log, messages)
		}
		call, known := calls[r.CallID]
		capture := tools.Policy(call.Name).Capture
		if !known || capture == nil {
			continue
		}
		if now, err := capture(call); err == nil {
			r.Determinism = &now
			messages[i].Parts = slices.Clone(messages[i].Parts)
			for n, part := range messages[i].Parts {
				if _, ok := part.(thread.ToolResult); ok {
					messages[i].Parts[n] = r
					break
				}
			}
		}
	}
}

// callsOf are the calls that messages may answer, by id: those of the last step of the
// log, and their own.
func callsOf(log *thread.Thread, messages []thread.Message) map[string]thread.ToolCall {
	calls := map[string]thread.ToolCall{}
	add := func(m *thread.Message) {
		for _, call := range m.Calls() {
			calls[call.ID] = call
		}
	}
	for i := log.Len() - 1; i >= 0; i-- {
		if m := log.At(i); m.Role == thread.Assistant {
			add(m)
			break
		}
	}
	for i := range messages {
		add(&messages[i])
	}
	return calls
}
