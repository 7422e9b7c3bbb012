package anthropic

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// emptyText is the content of a message that has none left: the API refuses empty ones.
const emptyText = "(empty)"

// unit is a run of messages that are written together: a whole frame, or one message
// without a whole frame.
type unit struct {
	first, end int
	frame      *thread.Frame // nil unless the frame is whole
}

// assemble writes the messages as elements of the array.
func (e *encoder) assemble() {
	messages := e.p.Messages
	groups := e.groups()
	e.elements = make([]element, 0, len(groups))
	for _, g := range groups {
		if len(g) == 1 && g[0].frame != nil {
			e.elements = append(e.elements, e.wholeElement(g[0]))
			continue
		}
		el := element{first: g[0].first, end: g[len(g)-1].end}
		el.role = e.roleOf(el.first)
		// The API wants the results of a batch first.
		var results, rest []piece
		for i := el.first; i < el.end; i++ {
			blocks := e.blocks(i)
			if messages[i].Role == thread.Tool {
				results = append(results, blocks...)
			} else {
				rest = append(rest, blocks...)
			}
		}
		el.blocks = append(results, rest...)
		if len(el.blocks) == 0 {
			el.blocks = []piece{{e.placeholderBlock(el), el.first}}
		}
		e.elements = append(e.elements, el)
	}
	e.startWithUser()
}

// startWithUser adds the user message that the API wants first to a translated
// conversation that lacks one.
func (e *encoder) startWithUser() {
	if len(e.elements) == 0 || e.elements[0].role != "assistant" || e.spliced {
		return
	}
	for _, part := range e.p.Messages[0].Parts {
		if isOwn(part.From()) {
			return
		}
	}
	e.elements = slices.Insert(e.elements, 0, element{role: "user", blocks: []piece{{textBlock(emptyText), -1}}})
}

// wholeElement sends a frame on as it is.
func (e *encoder) wholeElement(u unit) element {
	for i := u.first; i < u.end; i++ {
		m := &e.p.Messages[i]
		for _, call := range m.Calls() {
			e.calls.call(call.ID, true)
		}
		if r, ok := m.Result(); ok {
			e.calls.result(r.CallID)
		}
	}
	return element{role: e.roleOf(u.first), raw: u.frame.Raw(), first: u.first, end: u.end}
}

// roleOf returns the role that a message is sent with. System messages from elsewhere are
// lowered to the user's role, because not every model accepts them in mid conversation.
func (e *encoder) roleOf(i int) string {
	switch m := &e.p.Messages[i]; {
	case m.Role == thread.Assistant:
		return "assistant"
	case m.Role == thread.System && !e.isLowered(m):
		return "system"
	}
	return "user"
}

func (e *encoder) isLowered(m *thread.Message) bool {
	return m.Role == thread.System && !e.midSystem && !slices.ContainsFunc(m.Parts, func(p thread.Part) bool { return isOwn(p.From()) })
}

// groups divides the messages into units, and joins those that the API wants in one message:
// the results of one batch and the user text after them.
func (e *encoder) groups() (list [][]unit) {
	messages := e.p.Messages
	for i := 0; i < len(messages); {
		u := unit{first: i, end: i + 1}
		if n := codec.WholeFrame(messages[i:], wire.Anthropic); n > 0 {
			u.frame, u.end = messages[i].Frame, i+n
		}
		if n := len(list); n > 0 && e.canJoin(list[n-1], u) {
			list[n-1] = append(list[n-1], u)
		} else {
			list = append(list, []unit{u})
		}
		i = u.end
	}
	return list
}

// canJoin reports whether the API wants a unit in one message with the group before it.
func (e *encoder) canJoin(group []unit, next unit) bool {
	messages := e.p.Messages
	last := group[len(group)-1]
	before, after := &messages[last.end-1], &messages[next.first]
	kept := last.frame != nil && next.frame != nil
	if kept && last.frame.Position()+last.frame.Elements() == next.frame.Position() {
		// They were neighbours in a request that the API accepted.
		return false
	}
	switch {
	case after.Role == thread.Tool && before.Role == thread.Tool:
		return true
	case after.Role == thread.Tool && before.Role != thread.Assistant:
		// Text that slipped in between a call and its result.
		if e.roleOf(group[0].first) != "user" || last.frame != nil {
			return false
		}
		return messages[group[0].first].Role == thread.Tool || isAnswerTo(messages, group[0].first, after)
	case after.Role == thread.User || e.isLowered(after):
		return before.Role == thread.Tool && next.frame == nil && (last.frame == nil || len(group) > 1)
	case after.Role == thread.Assistant && before.Role == thread.Assistant:
		// A response in pieces, or one that was logged in pieces: its calls must end it.
		return before.Frame != nil && before.Frame == after.Frame || len(before.Calls()) > 0
	}
	return false
}

// isAnswerTo reports whether a result answers a call of the message before i.
func isAnswerTo(messages []thread.Message, i int, m *thread.Message) bool {
	r, ok := m.Result()
	if !ok || i == 0 {
		return false
	}
	return slices.ContainsFunc(messages[i-1].Calls(), func(c thread.ToolCall) bool { return c.ID == r.CallID })
}

// placeholderBlock is the block for an element without content: the readable text of what
// was left out, or else emptyText.
func (e *encoder) placeholderBlock(el element) string {
	for i := el.first; i < el.end; i++ {
		for _, part := range e.p.Messages[i].Parts {
			if o, ok := part.(thread.Opaque); ok && !isBlank(o.Text) {
				return textBlock(o.Text)
			}
		}
	}
	return textBlock(emptyText)
}
