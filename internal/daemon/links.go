package daemon

import (
	"cmp"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// linked ties messages that come alone to the log behind which they go: a codec
// that reads only the end of a conversation cannot know the calls before it. What
// it leaves out is the tool of a result, and where a provider gives calls no ids
// their number (thread.LocalID) and which of them a result answers. The messages
// come out as if the codec had read the whole conversation.
func linked(log *thread.Thread, messages []thread.Message) []thread.Message {
	l := linker{log: log, before: log.Len(), ids: map[string]string{}, tools: map[string]string{}}
	out := slices.Clone(messages)
	for i := range out {
		out[i].Parts = slices.Clone(out[i].Parts)
		for n, part := range out[i].Parts {
			switch part := part.(type) {
			case thread.ToolCall:
				out[i].Parts[n] = l.call(part)
			case thread.ToolResult:
				out[i].Parts[n] = l.result(part)
			}
		}
	}
	return out
}

type linker struct {
	log *thread.Thread
	// ids are the numbers that calls among the messages got in place of theirs.
	ids map[string]string
	// made is the number of the next call without an id, open are such calls in
	// the log that nothing answers yet; read says that the log was looked at.
	made int
	open []thread.ToolCall
	read bool
	// tools are the names of tools by the id of a call, the last one's where
	// several have it. Those of the log are in it from the position before on.
	tools  map[string]string
	before int
}

// look reads what the log has of calls without ids.
func (l *linker) look() {
	if l.read {
		return
	}
	l.read = true
	for _, m := range uncopied.All(l.log) {
		for _, c := range m.Calls() {
			if thread.IsLocalID(c.ID) {
				l.made++
				l.open = append(l.open, c)
			}
		}
		if r, ok := m.Result(); ok {
			l.open = slices.DeleteFunc(l.open, func(c thread.ToolCall) bool { return c.ID == r.CallID })
		}
	}
}

func (l *linker) call(c thread.ToolCall) thread.ToolCall {
	if thread.IsLocalID(c.ID) {
		l.look()
		id := thread.LocalID(l.made)
		l.made++
		l.ids[c.ID], c.ID = id, id
	}
	l.tools[c.ID] = c.Name
	return c
}

func (l *linker) result(r thread.ToolResult) thread.ToolResult {
	if thread.IsLocalID(r.CallID) {
		l.look()
		if id, here := l.ids[r.CallID]; here {
			r.CallID = id
		} else if at := slices.IndexFunc(l.open, func(c thread.ToolCall) bool { return r.Tool == "" || c.Name == r.Tool }); at >= 0 {
			r.CallID = l.open[at].ID
			l.open = slices.Delete(l.open, at, at+1)
		}
	}
	if r.Tool == "" {
		r.Tool = l.tool(r.CallID)
	}
	return r
}

// tool is the tool of a call: among the messages, else the last in the log with
// the id.
func (l *linker) tool(id string) string {
	for ; l.tools[id] == "" && l.before > 0; l.before-- {
		for _, c := range uncopied.At(l.log, l.before-1).Calls() {
			l.tools[c.ID] = cmp.Or(l.tools[c.ID], c.Name)
		}
	}
	return l.tools[id]
}
