package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// copilotSilent are the families of events of Copilot CLI that no model sees, and events of other families.
var copilotSilent = []string{"session.", "assistant.turn_", "assistant.usage", "assistant.intent", "assistant.reasoning", "tool.execution_start", "tool.execution_progress", "tool.execution_partial_result", "tool.user_requested", "subagent.", "hook.", "permission.", "skill.", "abort", "pending_messages.", "user_input.", "model.", "elicitation.", "mcp.", "command.", "external_tool."}

// readCopilot reads a session of Copilot CLI: a list of events. Those of a sub-agent name it. After a
// rewind the events from one on are gone.
func readCopilot(j *importJob) ([]Transcript, error) {
	var log course[record]
	places := map[string]int{}
	err := j.lines(func(v gjson.Result, number int) {
		if v.Get("type").Str == "session.snapshot_rewind" {
			j.report.skip("session.snapshot_rewind")
			id := v.Get("data.upToEventId").Str
			if at, known := places[id]; known && at < len(log.now) && log.now[at].Get("id").Str == id {
				log.goBack(at)
			} else {
				j.report.warn(number, "the user went back to an event that is not there; nothing was taken back")
			}
			return
		}
		places[v.Get("id").Str] = len(log.now)
		log.now = append(log.now, record{Result: v, line: number})
	})
	if err != nil {
		return nil, err
	}
	side := subagentSides{job: j}
	found, err := side.copilotEvents(log.now).transcripts(built(log.left, side.copilotEvents)...)
	if err != nil {
		return nil, err
	}
	return side.addTo(found, j.name)
}

// copilotEvents makes a conversation of events, with those of sub-agents beside it.
func (side *subagentSides) copilotEvents(events []record) *builder {
	main := side.job.newBuilder(value{name: side.job.name})
	for _, e := range events {
		data, b := e.Get("data"), main
		if agent := cmp.Or(e.Get("agentId").Str, data.Get("parentToolCallId").Str); agent != "" {
			b = side.of(agent)
		}
		b.at(e.line, parseTime(e.Get("timestamp").Str))
		copilotEvent(b, e.Get("type").Str, data)
	}
	return main
}

func copilotEvent(b *builder, kind string, data gjson.Result) {
	switch kind {
	case "session.start", "session.resume":
		b.Name = cmp.Or(data.Get("sessionId").Str, b.Name)
		b.Model, b.Dir = cmp.Or(data.Get("selectedModel").Str, b.Model), cmp.Or(data.Get("context.cwd").Str, b.Dir)
	case "session.model_change":
		b.Model = cmp.Or(data.Get("newModel").Str, b.Model)
	case "session.title_changed":
		b.Title = cmp.Or(data.Get("title").Str, b.Title)
	case "session.compaction_complete":
		if !data.Get("success").Bool() {
			break
		}
		c := Compaction{TokensBefore: int(data.Get("preCompactionTokens").Int()), Trigger: data.Get("trigger").Str}
		b.summarized(c, textParts(data.Get("summaryContent").Str)...)
		return
	case "system.message":
		b.addSystem(cmp.Or(data.Get("role").Str, "system"), data.Get("content").Str)
		return
	case "user.message":
		copilotUser(b, data)
		return
	case "assistant.message":
		copilotAnswer(b, data)
		return
	case "tool.execution_complete":
		r := thread.ToolResult{CallID: data.Get("toolCallId").Str, Outcome: outcomeOf(!data.Get("success").Bool())}
		r.Content = textParts(cmp.Or(firstText(data, "result.content", "error.message"), data.Get("result").Str))
		for block := range rawjson.Items(data.Get("result.contents")) {
			if isFile[block.Get("type").Str] { // the texts are those above
				r.Content = append(r.Content, readParts(block)...)
			}
		}
		b.answer(r)
		return
	}
	if slices.ContainsFunc(copilotSilent, func(family string) bool { return strings.HasPrefix(kind, family) }) {
		b.report.skip(kind)
	} else {
		b.report.unknown(kind)
	}
}

// copilotUser adds what the user said, and the files that were attached.
func copilotUser(b *builder, data gjson.Result) {
	kind := thread.Plain
	if source := data.Get("source").Str; source != "" && source != "user" {
		kind = thread.Injected
	}
	b.say(thread.User, kind, textParts(data.Get("content").Str)...)
	var attached []thread.Part
	for a := range rawjson.Items(data.Get("attachments")) {
		if a.Get("data").Exists() || a.Get("mimeType").Exists() {
			attached = append(attached, fileMedia(a))
		} else {
			attached = append(attached, textParts(strings.TrimSpace("Attached "+firstText(a, "path", "displayName", "filePath", "title")+"\n"+firstText(a, "text", "content", "url")))...)
		}
	}
	b.sayAny(thread.Attached, attached)
}

func copilotAnswer(b *builder, data gjson.Result) {
	b.Model = cmp.Or(data.Get("model").Str, b.Model)
	if text := data.Get("reasoningText").Str; text != "" {
		b.addPart(thread.Reasoning{Text: text})
	}
	b.addPart(textParts(data.Get("content").Str)...)
	for c := range rawjson.Items(data.Get("toolRequests")) {
		b.addCall(c.Get("toolCallId").Str, c.Get("name").Str, argumentsJSON(c.Get("arguments")))
	}
	if len(b.step.parts) == 0 {
		b.say(thread.Assistant, thread.Plain) // only to count it
	}
	b.flush()
}
