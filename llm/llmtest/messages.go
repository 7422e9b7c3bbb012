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

func anthropicBlocks(a *Answer, req gjson.Result) (blocks []string, stop string) {
	stop = anthropicStops[a.stop()]
	if a.Reasoning != "" {
		seal := a.seal
		if seal == "" {
			seal = "c2VhbA=="
		}
		blocks = append(blocks, `{"type":"thinking","thinking":`+quote(a.Reasoning)+`,"signature":`+quote(seal)+`}`)
	}
	if a.Unknown {
		blocks = append(blocks, `{"type":"aside","note":{"n":1}}`)
	}
	call := func(id, name, args string) {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(id), quote(name), args))
	}
	if name := req.Get("tool_choice.name").Str; name != "" && a.Text != "" && a.stop() == llm.StopEnd {
		call("toolu_forced", name, a.Text)
		return blocks, "tool_use"
	}
	if a.Text != "" {
		blocks = append(blocks, `{"type":"text","text":`+quote(a.Text)+`}`)
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
	extra := ""
	if a.Usage.Known {
		extra += `,"usage":` + anthropicUsage(a.Usage)
	}
	if a.Unknown {
		extra += `,"novelty":{"a":[1,2]}`
	}
	return fmt.Sprintf(`{"id":%q,"type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%s,"stop_sequence":null%s}`,
		a.id("msg"), req.Get("model").Raw, strings.Join(blocks, ","), quote(stop), extra)
}
