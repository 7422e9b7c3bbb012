package llmtest

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
)

func responseItems(a *Answer) (items []string) {
	if a.Reasoning != "" {
		sealed := ""
		if a.seal != "" {
			sealed = `,"encrypted_content":` + quote(a.seal)
		}
		items = append(items, `{"type":"reasoning","id":"`+a.id("rs")+`","summary":[{"type":"summary_text","text":`+quote(a.Reasoning)+`}]`+sealed+`}`)
	}
	if a.Text != "" {
		kind, field := "output_text", "text"
		if a.stop() == llm.StopRefusal {
			kind, field = "refusal", "refusal"
		}
		items = append(items, fmt.Sprintf(`{"type":"message","id":%q,"status":"completed","role":"assistant","content":[{"type":%q,%q:%s}]}`, a.id("msg"), kind, field, quote(a.Text)))
	}
	for i, c := range a.Calls {
		items = append(items, fmt.Sprintf(`{"type":"function_call","id":"%s_%d","call_id":%s,"name":%s,"arguments":%s}`, a.id("fc"), i, quote(c.ID), quote(c.Name), quote(c.Arguments)))
	}
	return items
}

func responseBody(a *Answer, req gjson.Result) string {
	state := `"status":"completed","incomplete_details":null`
	if reason := map[llm.Stop]string{
		llm.StopLength: "max_output_tokens", llm.StopFilter: "content_filter", llm.StopContext: "model_context_window_exceeded", llm.StopOther: "pause",
	}[a.stop()]; reason != "" {
		state = `"status":"incomplete","incomplete_details":{"reason":` + quote(reason) + `}`
	}
	extra := ""
	if a.Usage.Known {
		u := a.Usage
		extra = fmt.Sprintf(`,"usage":{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"output_tokens_details":{"reasoning_tokens":%d}}`,
			u.Input, u.Output, u.Input+u.Output, u.CacheRead, u.CacheWrite, u.Reasoning)
	}
	if a.Unknown {
		extra += `,"novelty":{"a":[1,2]}`
	}
	return fmt.Sprintf(`{"id":%q,"object":"response","model":%s,%s,"error":null,"output":[%s]%s}`,
		a.id("resp"), req.Get("model").Raw, state, strings.Join(responseItems(a), ","), extra)
}
