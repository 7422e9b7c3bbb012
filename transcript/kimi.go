package transcript

import (
	"cmp"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readKimiCode reads a wire log of Kimi Code: what was added to the context, in order,
// with the answers of the model in pieces.
func readKimiCode(j *importJob) ([]Transcript, error) {
	b := j.newBuilder(value{name: j.name})
	if err := j.lines(func(v gjson.Result, number int) { kimiRecord(b, v, number) }); err != nil {
		return nil, err
	}
	return b.transcripts()
}

func kimiRecord(b *builder, v gjson.Result, number int) {
	b.at(number, millisTime(v.Get("time").Int()))
	switch kind := v.Get("type").Str; kind {
	case "config.update":
		b.report.skip(kind)
		if p := v.Get("systemPrompt").Str; p != "" {
			b.System = []prompt.System{{Text: p, Role: "system"}}
		}
	case "llm.request":
		b.report.skip(kind)
		b.Model = cmp.Or(v.Get("model").Str, b.Model)
	case "context.append_message":
		b.flush()
		how := thread.Plain
		if origin := v.Get("message.origin.kind").Str; origin != "" && origin != "user" {
			how = thread.Injected
		}
		switch role := thread.Role(v.Get("message.role").Str); role {
		case thread.User, thread.Assistant, thread.System:
			b.say(role, how, readParts(v.Get("message.content"))...)
		default:
			b.report.unknown(kind + "/" + string(role))
		}
	case "context.append_loop_event":
		kimiEvent(b, v.Get("event"))
	case "context.apply_compaction":
		b.flush()
		summary := firstText(v, "contextSummary", "summary")
		b.addCompaction(Compaction{TokensBefore: int(v.Get("tokensBefore").Int())}, summary != "")
		b.say(thread.User, thread.Recap, textParts(summary)...)
	case "metadata", "tools.set_active_tools", "turn.prompt", "llm.tools_snapshot", "usage.record",
		"permission.record_approval_result", "plan_mode.enter", "plan_mode.exit",
		"full_compaction.begin", "full_compaction.complete":
		b.report.skip(kind)
	default:
		b.report.unknown(kind)
	}
}

func kimiEvent(b *builder, e gjson.Result) {
	switch kind := e.Get("type").Str; kind {
	case "step.begin", "step.end":
		b.report.skip(kind)
		if kind == "step.begin" {
			b.flush()
		}
	case "content.part":
		b.addPart(readParts(e.Get("part"))...)
	case "tool.call":
		b.addCall(e.Get("toolCallId").Str, e.Get("name").Str, argumentsJSON(e.Get("args")))
	case "tool.result":
		b.flush()
		r := thread.ToolResult{CallID: b.openCallID(e.Get("toolCallId").Str), Outcome: outcomeOf(e.Get("result.isError").Bool())}
		if out := e.Get("result.output"); out.IsArray() {
			r.Content = readParts(out)
		} else {
			r.Structured, r.Content = structuredResult(out)
		}
		b.answer(r)
	default:
		b.report.unknown("event/" + kind)
	}
}
