package llmtest

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
)

var chatStops = map[llm.Stop]string{
	llm.StopEnd: "stop", llm.StopLength: "length", llm.StopTool: "tool_calls", llm.StopRefusal: "stop",
	llm.StopFilter: "content_filter", llm.StopContext: "model_context_window_exceeded", llm.StopOther: "pause",
}

func chatUsage(u llm.Usage) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		u.Input, u.Output, u.Input+u.Output, u.CacheRead, u.CacheWrite, u.Reasoning)
}

// chatText is the field that carries the text: a refusal has one of its own.
func chatText(a *Answer) string {
	if a.stop() == llm.StopRefusal {
		return "refusal"
	}
	return "content"
}

func chatBody(a *Answer, req gjson.Result) string {
	var b strings.Builder
	b.WriteString(`{"role":"assistant","content":`)
	switch {
	case a.Text != "" && chatText(a) == "content":
		b.WriteString(quote(a.Text))
	default:
		b.WriteString("null")
	}
	if chatText(a) == "refusal" {
		b.WriteString(`,"refusal":` + quote(a.Text))
	} else {
		b.WriteString(`,"refusal":null`)
	}
	if a.Reasoning != "" {
		b.WriteString(`,"reasoning_content":` + quote(a.Reasoning))
	}
	if len(a.Calls) > 0 {
		var calls []string
		for _, c := range a.Calls {
			calls = append(calls, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, quote(c.ID), quote(c.Name), quote(c.Arguments)))
		}
		b.WriteString(`,"tool_calls":[` + strings.Join(calls, ",") + "]")
	}
	b.WriteByte('}')
	extra := ""
	if a.Usage.Known {
		extra = `,"usage":` + chatUsage(a.Usage)
	}
	if a.Unknown {
		extra += `,"novelty":{"a":[1,2]}`
	}
	return fmt.Sprintf(`{"id":%q,"object":"chat.completion","model":%s,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%s}]%s}`,
		a.id("chatcmpl"), req.Get("model").Raw, b.String(), quote(chatStops[a.stop()]), extra)
}

func chatEvents(a *Answer, req gjson.Result) []string {
	var events []string
	chunk := func(choices, rest string) {
		events = append(events, fmt.Sprintf("data: {\"id\":%q,\"object\":\"chat.completion.chunk\",\"model\":%s,\"choices\":[%s]%s}\n\n", a.id("chatcmpl"), req.Get("model").Raw, choices, rest))
	}
	delta := func(d string) { chunk(`{"index":0,"delta":{`+d+`},"finish_reason":null}`, "") }
	delta(`"role":"assistant","content":""`)
	for _, s := range split(a.Reasoning) {
		delta(`"reasoning_content":` + quote(s))
	}
	if a.Unknown {
		events = append(events, ": a comment\n\n")
		delta(`"aside":{"n":1}`)
	}
	for _, s := range split(a.Text) {
		delta(`"` + chatText(a) + `":` + quote(s))
	}
	for i, c := range a.Calls {
		delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]`, i, quote(c.ID), quote(c.Name)))
		for _, s := range split(c.Arguments) {
			delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, quote(s)))
		}
	}
	chunk(fmt.Sprintf(`{"index":0,"delta":{},"finish_reason":%s}`, quote(chatStops[a.stop()])), "")
	if a.Usage.Known && req.Get("stream_options.include_usage").Bool() {
		chunk("", `,"usage":`+chatUsage(a.Usage))
	}
	return append(events, "data: [DONE]\n\n")
}
