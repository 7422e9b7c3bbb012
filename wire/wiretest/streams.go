package wiretest

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// sample is an answer as a body in one piece and as the events of a stream.
type sample struct {
	name, whole string
	events      []string
	endless     bool // no event says that it is the last
}

// answerOf makes an answer of the element that stands for it in a request. It is
// false for elements that no stream has in that form.
func answerOf(api, element string) (sample, bool) {
	switch api {
	case wire.Anthropic:
		return messageAnswer(gjson.Parse(element))
	case wire.Chat:
		return chatAnswer(gjson.Parse(element))
	case wire.Responses:
		return responseAnswer("[" + element + "]"), true
	}
	return contentAnswer(element)
}

func messageAnswer(m gjson.Result) (a sample, ok bool) {
	const used = `{"input_tokens":40,"cache_read_input_tokens":60,"cache_creation_input_tokens":0,"output_tokens":20}`
	content := m.Get("content")
	if content.Type == gjson.String {
		content = gjson.Parse(`[{"type":"text","text":` + content.Raw + `}]`)
	}
	a.whole = `{"id":"id_1","type":"message","model":"model-1","role":"assistant","content":` + content.Raw + `,"stop_reason":"end_turn","usage":` + used + `}`
	a.add(`{"type":"message_start","message":{"id":"id_1","model":"model-1","content":[],"usage":`, set(used, "output_tokens", "1"), `}}`)
	a.add(`{"type":"ping"}`)
	for i, b := range content.Array() {
		at := `"index":` + strconv.Itoa(i)
		start, pieces := b.Raw, []string(nil)
		grows := func(field, kind, name string) {
			if v := b.Get(field); v.Type == gjson.String && v.Str != "" {
				start = set(start, field, `""`)
				for _, s := range pieced(v.Str) {
					pieces = append(pieces, `{"type":"`+kind+`","`+name+`":`+rawjson.Quote(s)+`}`)
				}
			}
		}
		switch b.Get("type").Str {
		case "text":
			grows("text", "text_delta", "text")
		case "thinking":
			grows("thinking", "thinking_delta", "thinking")
			grows("signature", "signature_delta", "signature")
		case "tool_use":
			start = set(start, "input", "{}")
			for _, s := range pieced(b.Get("input").Raw) {
				pieces = append(pieces, `{"type":"input_json_delta","partial_json":`+rawjson.Quote(s)+`}`)
			}
		}
		a.add(`{"type":"content_block_start",`, at, `,"content_block":`, start, `}`)
		for _, p := range pieces {
			a.add(`{"type":"content_block_delta",`, at, `,"delta":`, p, `}`)
		}
		a.add(`{"type":"content_block_stop",`, at, `}`)
	}
	a.add(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20}}`)
	a.add(`{"type":"message_stop"}`)
	return a, true
}

func chatAnswer(m gjson.Result) (a sample, ok bool) {
	const used = `"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":60}}`
	a.whole = `{"id":"id_1","model":"model-1","choices":[{"index":0,"message":` + m.Raw + `,"finish_reason":"stop"}],` + used + `}`
	delta := func(d string) {
		a.add(`{"id":"id_1","model":"model-1","choices":[{"index":0,"delta":`, d, `,"finish_reason":null}]}`)
	}
	delta(`{"role":"assistant","content":""}`)
	ok = true
	m.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "role":
		case "content", "reasoning_content", "reasoning", "refusal":
			ok = ok && (v.Type == gjson.String && v.Str != "" || v.Type == gjson.Null)
			for _, s := range pieced(v.Str) {
				delta(`{` + key.Raw + `:` + rawjson.Quote(s) + `}`)
			}
		case "tool_calls":
			for i, c := range v.Array() {
				kind, field := "function", "arguments"
				if c.Get("type").Str == "custom" {
					kind, field = "custom", "input"
				}
				at := `"index":` + strconv.Itoa(i)
				delta(`{"tool_calls":[{` + at + `,` + strings.TrimPrefix(strings.TrimSpace(set(c.Raw, kind+"."+field, `""`)), "{") + `]}`)
				for _, s := range pieced(c.Get(kind).Get(field).Str) {
					delta(`{"tool_calls":[{` + at + `,"` + kind + `":{"` + field + `":` + rawjson.Quote(s) + `}}]}`)
				}
			}
		default:
			ok = false
		}
		return true
	})
	a.add(`{"id":"id_1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	a.add(`{"id":"id_1","choices":[],`, used, `}`)
	a.add(`[DONE]`)
	return a, ok
}

func responseAnswer(items string) (a sample) {
	a.whole = `{"id":"id_1","object":"response","model":"model-1","status":"completed","output":` + items +
		`,"usage":{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":60}}}`
	a.add(`{"type":"response.created","response":{"id":"id_1","model":"model-1","status":"in_progress","output":[]}}`)
	for i, item := range gjson.Parse(items).Array() {
		at := `"output_index":` + strconv.Itoa(i)
		a.add(`{"type":"response.output_item.added",`, at, `,"item":`, item.Raw, `}`)
		for _, part := range item.Get("content").Array() {
			for _, s := range pieced(part.Get("text").Str) {
				a.add(`{"type":"response.output_text.delta",`, at, `,"delta":`, rawjson.Quote(s), `}`)
			}
		}
		if content := item.Get("content"); content.Type == gjson.String && content.Str != "" {
			a.add(`{"type":"response.output_text.delta",`, at, `,"delta":`, content.Raw, `}`)
		}
		for _, s := range pieced(item.Get("arguments").Str) {
			a.add(`{"type":"response.function_call_arguments.delta",`, at, `,"delta":`, rawjson.Quote(s), `}`)
		}
		a.add(`{"type":"response.output_item.done",`, at, `,"item":`, item.Raw, `}`)
	}
	a.add(`{"type":"response.completed","response":`, a.whole, `}`)
	return a
}

func contentAnswer(content string) (a sample, ok bool) {
	const used = `"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":20}`
	chunk := func(content, rest string) string {
		return `{"responseId":"id_1","modelVersion":"model-1","candidates":[{"index":0,"content":` + content + rest + `}],` + used + `}`
	}
	a.whole, a.endless = chunk(content, `,"finishReason":"STOP"`), true
	parts := gjson.Get(content, "parts").Array()
	for i, part := range parts {
		if i > 0 && part.Get("text").Exists() && parts[i-1].Get("text").Exists() && part.Get("thought").Bool() == parts[i-1].Get("thought").Bool() {
			return a, false // a stream has them as one
		}
		for _, s := range pieced(part.Get("text").Str) {
			if len(part.Map()) == 1 {
				a.add(chunk(`{"role":"model","parts":[{"text":`+rawjson.Quote(s)+`}]}`, ""))
			}
		}
		if part.Get("text").Str == "" || len(part.Map()) > 1 {
			a.add(chunk(`{"role":"model","parts":[`+part.Raw+`]}`, ""))
		}
	}
	a.add(chunk(`{"role":"model"}`, `,"finishReason":"STOP"`))
	return a, true
}

func (a *sample) add(event ...string) { a.events = append(a.events, strings.Join(event, "")) }

// pieced cuts a text into a few pieces between its characters.
func pieced(text string) (list []string) {
	r := []rune(text)
	for n := max(1, (len(r)+4)/5); len(r) > 0; {
		n = min(n, len(r))
		list = append(list, string(r[:n]))
		r = r[n:]
	}
	return list
}

func set(doc, path, value string) string {
	out, err := sjson.SetRaw(doc, path, value)
	if err != nil {
		panic(err) // the paths are this package's own
	}
	return out
}
