package transcript

import (
	"cmp"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readKimiCode reads a wire log of Kimi Code: what the context gained, in order, with
// the answers of the model in pieces.
func readKimiCode(j *importJob) ([]Transcript, error) {
	b := newBuilder(j.name, j.report)
	if err := j.lines(b.kimi); err != nil {
		return nil, err
	}
	return b.transcripts()
}

func (b *builder) kimi(v gjson.Result, number int) {
	at := millisTime(v.Get("time").Int())
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
		m, origin := v.Get("message"), v.Get("message.origin.kind").Str
		how := thread.Plain
		if origin != "" && origin != "user" {
			how = thread.Injected
		}
		role := thread.Role(m.Get("role").Str)
		if role != thread.User && role != thread.Assistant && role != thread.System {
			b.report.unknown(kind + "/" + string(role))
			return
		}
		b.add(number, at, how, thread.Message{Role: role, Parts: readParts(m.Get("content"))})
	case "context.append_loop_event":
		b.kimiEvent(v.Get("event"), number, at)
	case "context.apply_compaction":
		b.flush()
		summary := firstText(v, "contextSummary", "summary")
		b.addCompaction(Compaction{TokensBefore: int(v.Get("tokensBefore").Int())}, summary != "")
		b.add(number, at, thread.Recap, userMessage(summary))
	case "metadata", "tools.set_active_tools", "turn.prompt", "llm.tools_snapshot", "usage.record",
		"permission.record_approval_result", "plan_mode.enter", "plan_mode.exit",
		"full_compaction.begin", "full_compaction.complete":
		b.report.skip(kind)
	default:
		b.report.unknown(kind)
	}
}

func (b *builder) kimiEvent(e gjson.Result, number int, at time.Time) {
	switch kind := e.Get("type").Str; kind {
	case "step.begin", "step.end":
		b.report.skip(kind)
		if kind == "step.begin" {
			b.flush()
		}
	case "content.part":
		b.addPart(number, at, readParts(e.Get("part"))...)
	case "tool.call":
		b.addPart(number, at, b.newCall(e.Get("toolCallId").Str, e.Get("name").Str, argumentsJSON(e.Get("args"))))
	case "tool.result":
		b.flush()
		result := e.Get("result")
		r := thread.ToolResult{CallID: b.openCallID(e.Get("toolCallId").Str), Outcome: outcomeOf(result.Get("isError").Bool())}
		if out := result.Get("output"); out.IsArray() {
			r.Content = readParts(out)
		} else {
			r.Structured, r.Content = structuredResult(out)
		}
		b.add(number, at, thread.Plain, toolMessage(r))
	default:
		b.report.unknown("event/" + kind)
	}
}
