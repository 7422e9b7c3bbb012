package palimpsest

import (
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// source returns the function that describes the source of a replayable result as it is
// now: Config.CurrentSource, else the tool's Capture, else the newest result in the log
// that was read from it. It looks at each source once: a plan asks for the same one many
// times, which may be slow, and would contradict itself if the answers differed.
func (c *Compactor) source(t *thread.Thread) func(thread.ToolCall) (thread.Determinism, bool) {
	look := c.lookAtSource(t)
	type answer struct {
		now   thread.Determinism
		known bool
	}
	var mu sync.Mutex
	answers := map[[2]string]answer{}
	return func(call thread.ToolCall) (thread.Determinism, bool) {
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

// lookAtSource is source without a memory.
func (c *Compactor) lookAtSource(t *thread.Thread) func(thread.ToolCall) (thread.Determinism, bool) {
	if c.config.CurrentSource != nil {
		return c.config.CurrentSource
	}
	newest := sync.OnceValue(func() map[string]thread.Determinism { return newestDeterminism(t) })
	return func(call thread.ToolCall) (thread.Determinism, bool) {
		if capture := c.config.Tools.Policy(call.Name).Capture; capture != nil {
			now, err := capture(call)
			return now, err == nil
		}
		now, known := newest()[toolclass.Source(call)]
		return now, known
	}
}

// newestDeterminism is what each source looked like when it was last read. After a write
// nobody knows.
func newestDeterminism(t *thread.Thread) map[string]thread.Determinism {
	newest, calls := map[string]thread.Determinism{}, map[string]thread.ToolCall{}
	for _, m := range t.All() {
		for _, call := range m.Calls() {
			calls[call.ID] = call
			switch toolclass.ClassOf(call.Name) {
			case toolclass.Edit, toolclass.Write:
				delete(newest, toolclass.Source(call))
			}
		}
		if r, ok := m.Result(); ok && r.Determinism != nil {
			if call, known := calls[r.CallID]; known {
				newest[toolclass.Source(call)] = *r.Determinism
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
