package daemon

import (
	"cmp"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// linkToLog completes messages that a codec read without the log before them. Such a
// codec cannot know the tool of a result and, where a provider gives calls no ids, their
// number (thread.LocalID) and which of them a result answers. The messages come out as
// if the codec had read the whole conversation.
func linkToLog(log *thread.Thread, messages []thread.Message) []thread.Message {
	l := linker{log: log, unread: log.Len(), ids: map[string]string{}, tools: map[string]string{}}
	out := slices.Clone(messages)
	for i := range out {
		out[i].Parts = slices.Clone(out[i].Parts)
		for n, part := range out[i].Parts {
			switch part := part.(type) {
			case thread.ToolCall:
				out[i].Parts[n] = l.linkCall(part)
			case thread.ToolResult:
				out[i].Parts[n] = l.linkResult(part)
			}
		}
	}
	return out
}

type linker struct {
	log *thread.Thread
	// ids maps local ids of calls among the messages to those that they got here.
	ids map[string]string
	// nextNumber is the number of the next call without an id. waiting are such calls of the log,
	// by tool and all of them under "", in order. scanned says that both were read from the log.
	nextNumber int
	waiting    map[string][]*waitingCall
	scanned    bool
	// tools are the names of tools by the id of the call; the last call counts where
	// several share an id. The log is read backwards, and the messages before the position
	// unread are still to come.
	tools  map[string]string
	unread int
}

// waitingCall is a call that may have its result already.
type waitingCall struct {
	id       string
	answered bool
}

// scanLog reads the calls without ids from the log.
func (l *linker) scanLog() {
	if l.scanned {
		return
	}
	l.scanned, l.waiting = true, map[string][]*waitingCall{}
	open := map[string][]*waitingCall{} // by id
	for _, m := range l.log.All() {
		for _, c := range m.Calls() {
			if thread.IsLocalID(c.ID) {
				l.nextNumber++
				w := &waitingCall{id: c.ID}
				open[c.ID] = append(open[c.ID], w)
				l.waiting[""] = append(l.waiting[""], w)
				if c.Name != "" {
					l.waiting[c.Name] = append(l.waiting[c.Name], w)
				}
			}
		}
		if r, ok := m.Result(); ok {
			for _, w := range open[r.CallID] {
				w.answered = true
			}
			delete(open, r.CallID)
		}
	}
}

// answer takes the first call of a tool, or of any for "", that waits for its result; nil if none does.
func (l *linker) answer(tool string) *waitingCall {
	for list := l.waiting[tool]; len(list) > 0; list = l.waiting[tool] {
		l.waiting[tool] = list[1:]
		if w := list[0]; !w.answered {
			w.answered = true
			return w
		}
	}
	return nil
}

func (l *linker) linkCall(c thread.ToolCall) thread.ToolCall {
	if thread.IsLocalID(c.ID) {
		l.scanLog()
		id := thread.LocalID(l.nextNumber)
		l.nextNumber++
		l.ids[c.ID], c.ID = id, id
	}
	l.tools[c.ID] = c.Name
	return c
}

func (l *linker) linkResult(r thread.ToolResult) thread.ToolResult {
	if thread.IsLocalID(r.CallID) {
		l.scanLog()
		if id, here := l.ids[r.CallID]; here {
			r.CallID = id
		} else if w := l.answer(r.Tool); w != nil {
			r.CallID = w.id
		}
	}
	if r.Tool == "" {
		r.Tool = l.toolName(r.CallID)
	}
	return r
}

// toolName is the tool of the call with an id: one of the messages, else the last one in
// the log.
func (l *linker) toolName(id string) string {
	for ; l.tools[id] == "" && l.unread > 0; l.unread-- {
		for _, c := range l.log.At(l.unread - 1).Calls() {
			l.tools[c.ID] = cmp.Or(l.tools[c.ID], c.Name)
		}
	}
	return l.tools[id]
}

// appendLinked completes messages (see linkToLog) and adds them to a thread.
func appendLinked(c *call, id string, messages []thread.Message) (added palimpsest.Appended, err error) {
	if messages, err = linkToThread(c, id, messages); err != nil {
		return added, err
	}
	return c.session(id).Append(c.r.Context(), messages...)
}

// linkToThread completes messages that are to follow the log of a thread (see linkToLog).
func linkToThread(c *call, id string, messages []thread.Message) ([]thread.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	log, err := c.tenant.Log.Load(c.r.Context(), id)
	if err != nil {
		return nil, err
	}
	first := log.Len()
	if at, known := log.Index(messages[0].ID); known {
		first = at
	}
	if c.op.IfMatch == "version" && c.version != api.Any {
		first = min(c.version, log.Len())
	}
	return linkToLog(log.Prefix(first), messages), nil
}
