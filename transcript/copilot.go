package transcript

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

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
	assets := map[string]string{} // files, in base64
	for _, e := range events {
		data, b := e.Get("data"), main
		if agent := cmp.Or(e.Get("agentId").Str, data.Get("parentToolCallId").Str); agent != "" {
			b = side.of(agent)
		}
		b.at(e.line, parseTime(e.Get("timestamp").Str))
		if kind := e.Get("type").Str; kind == "session.binary_asset" {
			assets[data.Get("assetId").Str] = data.Get("data").Str
		} else {
			copilotEvent(b, kind, data)
		}
	}
	for _, b := range append(side.all, main) {
		b.placeFiles(func(name string) string { return assets[name] })
	}
	return main
}

func copilotEvent(b *builder, kind string, data gjson.Result) {
	b.report.members("copilot-cli/"+kind, data)
	switch kind {
	case "session.start", "session.resume":
		b.Name = cmp.Or(data.Get("sessionId").Str, b.Name)
		b.Model, b.Dir = cmp.Or(data.Get("selectedModel").Str, b.Model), cmp.Or(data.Get("context.cwd").Str, b.Dir)
	case "session.model_change":
		b.Model = cmp.Or(data.Get("newModel").Str, b.Model)
	case "session.title_changed":
		b.Title = cmp.Or(data.Get("title").Str, b.Title)
	case "session.compaction_complete":
		if data.Get("success").Type == gjson.False {
			break
		}
		b.report.expects(kind, data, "summaryContent")
		c := Compaction{TokensBefore: int(data.Get("preCompactionTokens").Int()), Trigger: data.Get("trigger").Str}
		b.summarized(c, readParts(data.Get("summaryContent"))...)
		return
	case "session.context_cleared":
		b.addCompaction(Compaction{Trigger: "clear"}, false)
		return
	case "system.notification", "session.mode_notice_delivered":
		b.sayAny(thread.Injected, readParts(data.Get("content")))
		return
	case "permission.completed":
		if result := data.Get("result"); result.Get("kind").Str == "denied-interactively-by-user" && data.Get("decisionSource").Str == "human_response" {
			b.denied[data.Get("toolCallId").Str] = result.Get("feedback").Str
		}
	case "tool.user_requested":
		call := thread.ToolCall{ID: data.Get("toolCallId").Str, Name: data.Get("toolName").Str, Arguments: argumentsJSON(data.Get("arguments"))}
		b.calls[call.ID] = call
		return
	case "system.message":
		b.report.expects(kind, data, "content")
		b.addSystem(cmp.Or(data.Get("role").Str, "system"), partsText(readParts(data.Get("content"))))
		return
	case "user.message":
		b.report.expects(kind, data, "content")
		copilotUser(b, data)
		return
	case "assistant.message":
		b.report.expects(kind, data, "content")
		copilotAnswer(b, data)
		return
	case "tool.execution_complete":
		copilotResult(b, data)
		return
	}
	b.otherRecord(kind)
}

// copilotResult adds the result of a call, or what came out of a tool that the user ran.
func copilotResult(b *builder, data gjson.Result) {
	r := thread.ToolResult{CallID: data.Get("toolCallId").Str, Outcome: outcomeOf(!data.Get("success").Bool())}
	r.Content = firstParts(data, "error.message", "result.content", "error", "result")
	files := data.Get("result.binaryResultsForLlm")
	if !files.Exists() {
		files = data.Get("result.contents")
	}
	for block := range rawjson.Items(files) {
		if isFile[block.Get("type").Str] { // the texts are those above
			r.Content = append(r.Content, readParts(block)...)
		}
	}
	if !data.Get("isUserRequested").Bool() {
		b.answer(r)
		return
	}
	call := b.calls[r.CallID]
	text := shellText(cmp.Or(gjson.Get(call.Arguments, "command").Str, call.Name+" "+call.Arguments), r.Text(), false, gjson.Result{})
	b.say(thread.User, thread.Attached, textParts(text)...)
}

// copilotUser adds what the user said, and the files that were attached.
func copilotUser(b *builder, data gjson.Result) {
	kind := thread.Plain
	if source := data.Get("source").Str; source != "" && source != "user" || data.Get("isAutopilotContinuation").Bool() {
		kind = thread.Injected
	}
	b.say(thread.User, kind, readParts(data.Get("content"))...)
	var attached []thread.Part
	for a := range rawjson.Items(data.Get("attachments")) {
		if a.Get("data").Exists() || a.Get("assetId").Exists() {
			attached = append(attached, fileMedia(a))
		} else {
			attached = append(attached, textParts(strings.TrimSpace("Attached "+firstText(a, "path", "displayName", "filePath", "title")+"\n"+firstText(a, "text", "content", "url")))...)
		}
	}
	b.sayAny(thread.Attached, attached)
}

func copilotAnswer(b *builder, data gjson.Result) {
	b.Model = cmp.Or(data.Get("model").Str, b.Model)
	if text := partsText(readParts(data.Get("reasoningText"))); text != "" {
		b.addPart(thread.Reasoning{Text: text})
	}
	b.addPart(readParts(data.Get("content"))...)
	b.addPart(readParts(data.Get("serverTools.items"))...)
	for c := range rawjson.Items(data.Get("toolRequests")) {
		b.addCall(c.Get("toolCallId").Str, c.Get("name").Str, argumentsJSON(c.Get("arguments")))
	}
	if len(b.step.parts) == 0 {
		b.say(thread.Assistant, thread.Plain) // only to count it
	}
	b.flush()
}
