package dialect

import (
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// Anthropic is the Anthropic Messages API.
var Anthropic = &Dialect{
	codec: anthropic.Codec{}, Vendor: AnthropicVendor,
	CanReadAnswer: func(*http.Request, map[string]gjson.Result) bool { return true },
	list:          "content",
	call: func(block gjson.Result) (string, bool) {
		if block.Get("type").Str != "tool_use" {
			return "", false
		}
		return block.Get("name").Str, true
	},
	usage: "usage", usageFields: usageFields{written: []string{"output_tokens", "output_tokens_details", "server_tool_use"}, rounds: true},
	stop: "stop_reason", eventStop: "delta.stop_reason", toolStop: "tool_use", endStop: "end_turn",
	newTranslator: func(j streamJoiner) Translator { return &messageStream{j} },
	errorEvent:    "error", errorForm: `{"type":"error","error":{"type":"api_error","message":%s}}`,
}

type messageStream struct{ streamJoiner }

func (m *messageStream) TakeEvent(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	switch v.Get("type").Str {
	case "message_start":
		m.roundUsage = v.Get("message.usage").Raw
		if m.round > 0 {
			return nil, false
		}
	case "content_block_start":
		m.indexes.assign(v.Get("index").Int(), m.dialect.isShown(v.Get("content_block"), m.round))
		fallthrough
	case "content_block_delta", "content_block_stop":
		if data, shown := m.indexes.withShownIndex(e.Data, "index"); shown {
			return e.WithData(data), false
		}
		return nil, false
	case "message_delta":
		m.roundUsage = native.MergeUsage(m.roundUsage, v.Get("usage").Raw)
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
