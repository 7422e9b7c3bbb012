package llmtest

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
)

var anthropicStops = map[llm.Stop]string{
	llm.StopEnd: "end_turn", llm.StopLength: "max_tokens", llm.StopTool: "tool_use", llm.StopRefusal: "refusal",
	llm.StopFilter: "refusal", llm.StopContext: "model_context_window_exceeded", llm.StopOther: "pause_turn",
}

// messageBlock is a content block in two forms: whole, and as it begins and
// grows.
type messageBlock struct {
	whole, start string
	deltas       []string
}

func anthropicBlocks(a *Answer, req gjson.Result) (blocks []messageBlock, stop string) {
	stop = anthropicStops[a.stop()]
	if a.Reasoning != "" {
		seal := a.seal
		if seal == "" {
			seal = "c2VhbA=="
		}
		b := messageBlock{
			whole: `{"type":"thinking","thinking":` + quote(a.Reasoning) + `,"signature":` + quote(seal) + `}`,
			start: `{"type":"thinking","thinking":"","signature":""}`,
		}
		for _, s := range split(a.Reasoning) {
			b.deltas = append(b.deltas, `{"type":"thinking_delta","thinking":`+quote(s)+`}`)
		}
		b.deltas = append(b.deltas, `{"type":"signature_delta","signature":`+quote(seal)+`}`)
		blocks = append(blocks, b)
	}
	if a.Unknown {
		const whole = `{"type":"aside","note":{"n":1}}`
		blocks = append(blocks, messageBlock{whole: whole, start: whole, deltas: []string{`{"type":"aside_delta","n":2}`}})
	}
	call := func(id, name, args string) {
		head := fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":`, quote(id), quote(name))
		b := messageBlock{whole: head + args + "}", start: head + "{}}"}
		for _, s := range append([]string{""}, split(args)...) {
			b.deltas = append(b.deltas, `{"type":"input_json_delta","partial_json":`+quote(s)+`}`)
		}
		blocks = append(blocks, b)
	}
	if name := req.Get("tool_choice.name").Str; name != "" && a.Text != "" && a.stop() == llm.StopEnd {
		call("toolu_forced", name, a.Text)
		return blocks, "tool_use"
	}
	if a.Text != "" {
		b := messageBlock{whole: `{"type":"text","text":` + quote(a.Text) + `}`, start: `{"type":"text","text":""}`}
		for _, s := range split(a.Text) {
			b.deltas = append(b.deltas, `{"type":"text_delta","text":`+quote(s)+`}`)
		}
		blocks = append(blocks, b)
	}
	for _, c := range a.Calls {
		call(c.ID, c.Name, c.Arguments)
	}
	return blocks, stop
}

func anthropicUsage(u llm.Usage) string {
	return fmt.Sprintf(`{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":%d}`,
		u.Input-u.CacheRead-u.CacheWrite, u.CacheRead, u.CacheWrite, u.Output)
}

func anthropicBody(a *Answer, req gjson.Result) string {
	blocks, stop := anthropicBlocks(a, req)
	var wholes []string
	for _, b := range blocks {
		wholes = append(wholes, b.whole)
	}
	extra := ""
	if a.Usage.Known {
		extra += `,"usage":` + anthropicUsage(a.Usage)
	}
	if a.Unknown {
		extra += `,"novelty":{"a":[1,2]}`
	}
	return fmt.Sprintf(`{"id":%q,"type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%s,"stop_sequence":null%s}`,
		a.id("msg"), req.Get("model").Raw, strings.Join(wholes, ","), quote(stop), extra)
}

func anthropicEvents(a *Answer, req gjson.Result) []string {
	blocks, stop := anthropicBlocks(a, req)
	event := func(kind, rest string) string {
		return fmt.Sprintf("event: %s\ndata: {\"type\":%s%s}\n\n", kind, quote(kind), rest)
	}
	usage := ""
	if a.Usage.Known {
		first := a.Usage
		first.Output = 1
		usage = `,"usage":` + anthropicUsage(first)
	}
	events := []string{
		event("message_start", fmt.Sprintf(`,"message":{"id":%q,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null%s}`, a.id("msg"), req.Get("model").Raw, usage)),
		event("ping", ""),
	}
	for i, b := range blocks {
		events = append(events, event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, i, b.start)))
		for _, d := range b.deltas {
			events = append(events, event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, i, d)))
		}
		events = append(events, event("content_block_stop", fmt.Sprintf(`,"index":%d`, i)))
	}
	if a.Unknown {
		events = append(events, ": a comment\n\n", event("novelty", `,"n":1`))
	}
	last := ""
	if a.Usage.Known {
		last = fmt.Sprintf(`,"usage":{"output_tokens":%d}`, a.Usage.Output)
	}
	return append(events,
		event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%s,"stop_sequence":null}%s`, quote(stop), last)),
		event("message_stop", ""))
}
