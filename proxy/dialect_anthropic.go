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

func (messages) readable(*http.Request, map[string]gjson.Result) bool { return true }

// joined shows the blocks of all rounds, but of the thinking only the first
// round's: it alone is bound to what the client knows.
func (messages) joined(rounds [][]byte) []byte {
	calls := false
	out := joined(rounds, "content", "usage", messagesUsage, func(b gjson.Result, n int) bool {
		shown := shows(b, n)
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
	list := elements(v.Get("iterations"))
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

// shows reports whether the client is shown a block of round n.
func shows(block gjson.Result, n int) bool {
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

func (m *messageStream) next(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	switch v.Get("type").Str {
	case "message_start":
		m.now = v.Get("message.usage").Raw
		if m.round > 0 {
			return nil, false
		}
	case "content_block_start":
		m.indexes.put(v.Get("index").Int(), shows(v.Get("content_block"), m.round))
		return m.moved(e, v), false
	case "content_block_delta", "content_block_stop":
		return m.moved(e, v), false
	case "message_delta":
		m.now = over(m.now, v.Get("usage").Raw)
		m.stopped = true
		m.hold(e)
		return nil, false
	case "message_stop":
		m.hold(e)
		return nil, true
	}
	if len(m.held) > 0 {
		m.hold(e)
		return nil, false
	}
	return e.Raw, false
}

// moved is an event of a block under the index that the client knows.
func (m *messageStream) moved(e sse.Event, v gjson.Result) []byte {
	to, shown := m.indexes.of(v.Get("index").Int())
	switch {
	case !shown:
		return nil
	case to == v.Get("index").Int():
		return e.Raw
	}
	return e.With(jsonedit.Set(e.Data, "index", strconv.FormatInt(to, 10)))
}

func (m *messageStream) end(how streamEnd) []byte {
	if gjson.Get(how.wrote, "type").Str != "error" {
		how.wrote = ""
	}
	if out := how.failed("error", "error", `{"type":"error","error":{"type":"api_error","message":%s}}`); out != nil {
		return out
	}
	return m.release(func(data string) string {
		if gjson.Get(data, "type").Str != "message_delta" {
			return data
		}
		if m.round > 0 {
			data = jsonedit.Set(data, "usage", m.usage())
		}
		if how.dangling {
			data = jsonedit.Set(data, "delta.stop_reason", `"end_turn"`)
		}
		return data
	})
}
