package llmtest

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
)

// responseItem is an item of the output and the events that it grows by.
type responseItem struct {
	whole, start string
	kind         string   // of the events
	deltas       []string // the pieces
}

func responseItems(a *Answer) []responseItem {
	var items []responseItem
	if a.Reasoning != "" {
		sealed := ""
		if a.seal != "" {
			sealed = `,"encrypted_content":` + quote(a.seal)
		}
		items = append(items, responseItem{
			whole: `{"type":"reasoning","id":"` + a.id("rs") + `","summary":[{"type":"summary_text","text":` + quote(a.Reasoning) + `}]` + sealed + `}`,
			start: `{"type":"reasoning","id":"` + a.id("rs") + `","summary":[]}`,
			kind:  "reasoning_summary_text", deltas: split(a.Reasoning),
		})
	}
	if a.Text != "" {
		kind, field := "output_text", "text"
		if a.stop() == llm.StopRefusal {
			kind, field = "refusal", "refusal"
		}
		items = append(items, responseItem{
			whole: fmt.Sprintf(`{"type":"message","id":%q,"status":"completed","role":"assistant","content":[{"type":%q,%q:%s}]}`, a.id("msg"), kind, field, quote(a.Text)),
			start: `{"type":"message","id":"` + a.id("msg") + `","status":"in_progress","role":"assistant","content":[]}`,
			kind:  kind, deltas: split(a.Text),
		})
	}
	for i, c := range a.Calls {
		item := `{"type":"function_call","id":"%s_%d","call_id":%s,"name":%s,"arguments":%s}`
		items = append(items, responseItem{
			whole: fmt.Sprintf(item, a.id("fc"), i, quote(c.ID), quote(c.Name), quote(c.Arguments)),
			start: fmt.Sprintf(item, a.id("fc"), i, quote(c.ID), quote(c.Name), `""`),
			kind:  "function_call_arguments", deltas: split(c.Arguments),
		})
	}
	return items
}

func responseBody(a *Answer, req gjson.Result) string {
	var items []string
	for _, item := range responseItems(a) {
		items = append(items, item.whole)
	}
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
		a.id("resp"), req.Get("model").Raw, state, strings.Join(items, ","), extra)
}

func responseEvents(a *Answer, req gjson.Result) []string {
	var events []string
	event := func(kind, rest string) {
		events = append(events, fmt.Sprintf("event: response.%s\ndata: {\"type\":\"response.%s\",%s}\n\n", kind, kind, rest))
	}
	event("created", `"response":{"id":"`+a.id("resp")+`","status":"in_progress","error":null,"output":[]}`)
	for i, item := range responseItems(a) {
		event("output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i, item.start))
		for _, d := range item.deltas {
			event(item.kind+".delta", fmt.Sprintf(`"output_index":%d,"delta":%s`, i, quote(d)))
		}
		event("output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, item.whole))
	}
	if a.Unknown {
		events = append(events, ": a comment\n\n")
		event("novelty", `"n":1`)
	}
	last := "completed"
	if body := responseBody(a, req); strings.Contains(body, `"status":"incomplete"`) {
		last = "incomplete"
	}
	event(last, `"response":`+responseBody(a, req))
	return events
}
