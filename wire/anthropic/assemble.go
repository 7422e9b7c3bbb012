package anthropic

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
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
	for i := u.first; i < u.end && !e.calls.asTheyAre; i++ {
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
func (e *encoder) groups() [][]unit {
	messages := e.p.Messages
	list, units := make([][]unit, 0, len(messages)), make([]unit, 0, len(messages)) // each group is a part of the units
	for i := 0; i < len(messages); {
		u := unit{first: i, end: i + 1}
		if n := codec.WholeFrame(messages[i:], wire.Anthropic); n > 0 {
			u.frame, u.end = messages[i].Frame, i+n
		}
		if n := len(list); n > 0 && e.canJoin(list[n-1], u) {
			list[n-1] = append(list[n-1], u)
			units = units[:len(units)+1]
		} else {
			units = append(units, u)
			list = append(list, units[len(units)-1:])
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

// isBlank reports whether the API takes a text for empty.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// blocks writes the parts of a message that is not sent as a whole frame.
func (e *encoder) blocks(i int) []piece {
	m := &e.p.Messages[i]
	var list []piece
	add := func(raw string) {
		if raw != "" {
			list = append(list, piece{raw, i})
		}
	}
	for k, part := range m.Parts {
		if text, ok := part.(thread.Text); ok && !isOwn(text.Source) {
			switch {
			case e.isLowered(m) && !isBlank(text.Text):
				text.Text = "<system>\n" + text.Text + "\n</system>"
			case m.Role == thread.Assistant && i == len(e.p.Messages)-1 && k == len(m.Parts)-1:
				// A final assistant text that ends in white space is refused.
				text.Text = strings.TrimRight(text.Text, " \t\r\n")
			}
			part = text
		}
		add(e.block(part, m.Role))
	}
	return list
}

// block writes one part; "" if the API has no place for it.
func (e *encoder) block(part thread.Part, role thread.Role) string {
	switch p := part.(type) {
	case thread.Text:
		switch {
		case isBlank(p.Text):
			return ""
		case isOwn(p.Source):
			return asBlock(p.Raw)
		}
		return textBlock(p.Text)
	case thread.Reasoning:
		return reasoningBlock(p)
	case thread.Media:
		if isOwn(p.Source) {
			return p.Raw
		}
		return mediaBlock(p, role != thread.Assistant)
	case thread.ToolCall:
		id := e.calls.call(p.ID, isOwn(p.Source))
		if isOwn(p.Source) {
			return p.Raw
		}
		return rawjson.NewTypedObject("tool_use").Str("id", id).Str("name", e.tools.of(p.Name)).
			Raw("input", rawjson.AsObject(p.Arguments)).String()
	case thread.ToolResult:
		return e.result(p)
	case thread.Opaque:
		if isOwn(p.Source) {
			return p.Raw
		}
	}
	return ""
}

// reasoningBlock is sent only to the API that sealed it.
func reasoningBlock(p thread.Reasoning) string {
	switch {
	case p.API != wire.Anthropic:
		return ""
	case p.Raw != "":
		return p.Raw
	case p.Signature == "":
		return ""
	}
	return rawjson.NewTypedObject("thinking").Str("thinking", p.Text).Str("signature", p.Signature).String()
}

func (e *encoder) result(p thread.ToolResult) string {
	id := e.calls.result(p.CallID)
	if isOwn(p.Source) && id == p.CallID {
		return p.Raw
	}
	o := rawjson.NewTypedObject("tool_result").Str("tool_use_id", id)
	failed := p.Outcome == thread.Failure
	switch content := e.content(p.Content, failed); {
	case content != "":
		o.Raw("content", content)
	case failed:
		o.Str("content", emptyText)
	}
	if failed {
		o.Raw("is_error", "true")
	}
	return o.String()
}

// content writes the content of a result: a string for a single text, else blocks; "" when
// there is nothing to send. A failed result may hold text only.
func (e *encoder) content(parts []thread.Part, failed bool) string {
	var blocks []string
	for _, part := range parts {
		if failed {
			part = textFor(part)
		}
		if raw := e.block(part, thread.Tool); raw != "" {
			blocks = append(blocks, raw)
		}
	}
	if len(blocks) == 0 {
		for _, part := range parts {
			if o, ok := part.(thread.Opaque); ok && !isBlank(o.Text) {
				return rawjson.Quote(o.Text)
			}
		}
		return ""
	}
	if len(blocks) == 1 && len(parts) == 1 {
		if text, ok := parts[0].(thread.Text); ok {
			if isOwn(text.Source) && strings.HasPrefix(text.Raw, `"`) {
				return text.Raw
			}
			if !isOwn(text.Source) {
				return rawjson.Quote(text.Text)
			}
		}
	}
	return rawjson.Array(blocks)
}

// textFor turns media and opaque parts into text.
func textFor(part thread.Part) thread.Part {
	switch p := part.(type) {
	case thread.Media:
		return thread.Text{Text: media.Placeholder(p)}
	case thread.Opaque:
		if isOwn(p.Source) {
			return thread.Text{Text: p.Text}
		}
	}
	return part
}

// imageTypes are the image formats of the API.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// mediaBlock writes an image or document of another API, or a placeholder if this one has
// no form for it.
func mediaBlock(p thread.Media, allowed bool) string {
	var kind, src string
	web := strings.HasPrefix(p.URL, "https://") || strings.HasPrefix(p.URL, "http://")
	switch {
	case !allowed:
	case p.Text != "" && !isBlank(p.Text):
		kind, src = "document", rawjson.NewTypedObject("text").Str("media_type", "text/plain").Str("data", p.Text).String()
	case p.Data != "" && slices.Contains(imageTypes, p.MIME):
		kind = "image"
	case p.Data != "" && p.MIME == "application/pdf":
		kind = "document"
	case web && p.Type == thread.Image:
		kind, src = "image", rawjson.NewTypedObject("url").Str("url", p.URL).String()
	case web && p.Type == thread.Document:
		kind, src = "document", rawjson.NewTypedObject("url").Str("url", p.URL).String()
	}
	if kind == "" {
		return textBlock(media.Placeholder(p))
	}
	if src == "" {
		src = new(rawjson.Object).Str("type", "base64").Str("media_type", p.MIME).Str("data", p.Data).String()
	}
	o := rawjson.NewTypedObject(kind).Raw("source", src)
	if kind == "document" {
		o.NonEmpty("title", p.Name)
	}
	return o.String()
}
