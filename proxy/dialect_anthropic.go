package proxy

import (
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// messages is the Anthropic Messages API.
type messages struct{}

func (messages) canReadAnswer(*http.Request, map[string]gjson.Result) bool { return true }

// joinAnswers shows the blocks of all rounds, but of the thinking only the first
// round's: it alone is bound to what the client knows.
func (messages) joinAnswers(rounds [][]byte) []byte {
	calls := false
	out := joinLists(rounds, "content", "usage", messagesUsage, func(b gjson.Result, n int) bool {
		shown := isShownBlock(b, n)
		calls = calls || shown && b.Get("type").Str == "tool_use"
		return shown
	})
	if !calls && gjson.Get(out, "stop_reason").Str == "tool_use" {
		out = jsonedit.Set(out, "stop_reason", `"end_turn"`)
	}
	return []byte(out)
}

// iterations are the passes of a usage: those that it lists, else itself.
func iterations(usage string) []string {
	v := gjson.Parse(usage)
	list := rawElements(v.Get("iterations"))
	if list != nil || !v.IsObject() {
		return list
	}
	pass := `{"type":"message"`
	for _, name := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation", "output_tokens"} {
		if n := v.Get(name); n.Exists() {
			pass += `,"` + name + `":` + n.Raw
		}
	}
	return []string{pass + "}"}
}

// isShownBlock reports whether the client is shown a block of round n.
func isShownBlock(block gjson.Result, n int) bool {
	switch block.Get("type").Str {
	case "tool_use":
		return !isOurTool(block.Get("name").Str)
	case "thinking", "redacted_thinking":
		return n == 0
	}
	return true
}

func (messages) translator() translator {
	return &messageStream{streamJoiner{usageFields: messagesUsage}}
}

// messageStream joins streams of the Messages API.
type messageStream struct{ streamJoiner }

func (m *messageStream) takeEvent(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	switch v.Get("type").Str {
	case "message_start":
		m.roundUsage = v.Get("message.usage").Raw
		if m.round > 0 {
			return nil, false
		}
	case "content_block_start":
		m.indexes.assign(v.Get("index").Int(), isShownBlock(v.Get("content_block"), m.round))
		return m.withShownIndex(e, v), false
	case "content_block_delta", "content_block_stop":
		return m.withShownIndex(e, v), false
	case "message_delta":
		m.roundUsage = mergeMembers(m.roundUsage, v.Get("usage").Raw)
		m.complete = true
		m.holdBack(e)
		return nil, false
	case "message_stop":
		m.holdBack(e)
		return nil, true
	}
	if len(m.heldEvents) > 0 {
		m.holdBack(e)
		return nil, false
	}
	return e.Raw, false
}

// withShownIndex is an event of a block under the index that the client knows.
func (m *messageStream) withShownIndex(e sse.Event, v gjson.Result) []byte {
	to, shown := m.indexes.shownIndex(v.Get("index").Int())
	switch {
	case !shown:
		return nil
	case to == v.Get("index").Int():
		return e.Raw
	}
	return e.WithData(jsonedit.Set(e.Data, "index", strconv.FormatInt(to, 10)))
}

func (m *messageStream) end(end streamEnd) []byte {
	if gjson.Get(end.providerError, "type").Str != "error" {
		end.providerError = ""
	}
	if out := end.failureEvent("error", "error", `{"type":"error","error":{"type":"api_error","message":%s}}`); out != nil {
		return out
	}
	return m.releaseHeld(func(data string) string {
		if gjson.Get(data, "type").Str != "message_delta" {
			return data
		}
		if m.round > 0 {
			data = jsonedit.Set(data, "usage", m.totalUsage())
		}
		if end.callsRemoved {
			data = jsonedit.Set(data, "delta.stop_reason", `"end_turn"`)
		}
		return data
	})
}
