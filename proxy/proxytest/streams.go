package proxytest

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// stream gives the events of an answer, each as the provider sends it.
func stream(q *Request, body gjson.Result, a Answer) []string {
	switch q.API {
	case wire.Anthropic:
		return anthropicEvents(q, body, a)
	case wire.Chat:
		return chatEvents(q, body, a)
	case wire.Responses:
		return responseEvents(q, body, a)
	}
	var events []string
	parts := geminiParts(a)
	for n, part := range parts {
		events = append(events, "data: "+geminiChunk(q, []string{part}, n == len(parts)-1)+"\r\n\r\n")
	}
	return events
}

func anthropicEvents(q *Request, body gjson.Result, a Answer) []string {
	in, out := usage(q)
	event := func(kind, rest string) string {
		return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest)
	}
	events := []string{
		event("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}`, q.N, body.Get("model").Raw, in)),
		event("ping", ""),
	}
	for i, b := range anthropicBlocks(body, a) {
		events = append(events, event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, i, b.start)))
		for _, d := range b.deltas {
			events = append(events, event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, i, d)))
		}
		events = append(events, event("content_block_stop", fmt.Sprintf(`,"index":%d`, i)))
	}
	return append(events,
		event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}`, stop(a, "tool_use", "end_turn"), out)),
		event("message_stop", ""))
}

func chatEvents(q *Request, body gjson.Result, a Answer) []string {
	in, out := usage(q)
	var events []string
	chunk := func(choices, rest string) {
		events = append(events, fmt.Sprintf("data: {\"id\":\"chatcmpl-%d\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":%s,\"choices\":[%s]%s}\n\n", q.N, body.Get("model").Raw, choices, rest))
	}
	delta := func(d string) { chunk(`{"index":0,"delta":{`+d+`},"finish_reason":null}`, "") }
	delta(`"role":"assistant","content":""`)
	if a.Thinking != "" {
		delta(`"reasoning_content":` + quote(a.Thinking))
	}
	for _, s := range pieces(a.Text) {
		delta(`"content":` + quote(s))
	}
	for i, c := range a.Calls {
		delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]`, i, quote(c.ID), quote(c.Name)))
		half := len(c.Arguments) / 2
		for _, s := range []string{c.Arguments[:half], c.Arguments[half:]} {
			delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, quote(s)))
		}
	}
	chunk(fmt.Sprintf(`{"index":0,"delta":{},"finish_reason":%q}`, stop(a, "tool_calls", "stop")), "")
	if body.Get("stream_options.include_usage").Bool() {
		chunk("", fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, in, out, in+out))
	}
	return append(events, "data: [DONE]\n\n")
}

func responseEvents(q *Request, body gjson.Result, a Answer) []string {
	var events []string
	event := func(kind, rest string) {
		events = append(events, fmt.Sprintf("event: response.%s\ndata: {\"type\":\"response.%s\",\"sequence_number\":%d,%s}\n\n", kind, kind, len(events), rest))
	}
	event("created", `"response":`+response(q, body, a, "in_progress", nil))
	event("in_progress", `"response":`+response(q, body, a, "in_progress", nil))
	list := items(q, a)
	for i, u := range list {
		id := gjson.Get(u.whole, "id").Raw
		event("output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i, u.start))
		part := fmt.Sprintf(`"item_id":%s,"output_index":%d`, id, i)
		switch gjson.Get(u.whole, "type").Str {
		case "message":
			part += `,"content_index":0`
			event("content_part.added", part+`,"part":{"type":"output_text","annotations":[],"text":""}`)
			for _, d := range u.deltas {
				event("output_text.delta", part+`,"delta":`+quote(d))
			}
			event("output_text.done", part+`,"text":`+quote(strings.Join(u.deltas, "")))
			event("content_part.done", part+`,"part":`+gjson.Get(u.whole, "content.0").Raw)
		case "function_call":
			for _, d := range u.deltas {
				event("function_call_arguments.delta", part+`,"delta":`+quote(d))
			}
			event("function_call_arguments.done", part+`,"arguments":`+quote(strings.Join(u.deltas, "")))
		}
		event("output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, u.whole))
	}
	event("completed", `"response":`+response(q, body, a, "completed", list))
	return events
}
