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
