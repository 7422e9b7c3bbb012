package transcript

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// copilotSilent are the events of Copilot CLI that no model sees. Those of a session that are not named may hold something.
var copilotSilent = scan.WordSet(`abort assistant.idle assistant.intent assistant.message_delta assistant.message_start assistant.reasoning
	assistant.reasoning_delta assistant.server_tool_progress assistant.streaming_delta assistant.tool_call_delta assistant.turn_end assistant.turn_start
	assistant.usage auto_mode_switch. capabilities. command. commands. elicitation. exit_plan_mode. external_tool. factory. hook. mcp. mcp_app. model.
	pending_messages. permission. sampling. session_limits_exhausted. skill. subagent. tool.execution_partial_result tool.execution_progress
	tool.execution_start tool_search. ui. user_input. session.start session.resume session.model_change session.title_changed
	session.compaction_start session.compaction_complete session.auto_mode_resolved session.auto_tier_recommendation session.auto_tier_switch_failed
	session.autopilot_objective_changed session.background_tasks_changed session.completion_receipt session.context_changed
	session.custom_agents_updated session.error session.extensions_loaded session.idle session.info session.managed_settings_enforced
	session.managed_settings_resolved session.mcp_server_needs_reconnect session.mcp_server_removed session.mcp_server_status_changed
	session.mcp_servers_loaded session.mode_changed session.permissions_changed session.plan_changed session.remote_steerable_changed
	session.schedule_cancelled session.schedule_created session.schedule_rearmed session.session_limits_changed session.shutdown
	session.skills_loaded session.task_complete session.todos_changed session.tools_updated session.truncation session.usage_checkpoint
	session.usage_info session.warning session.workspace_file_changed`)

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
	case "session.context_cleared":
		b.addCompaction(Compaction{Trigger: "clear"}, false)
		return
	case "system.notification", "session.mode_notice_delivered":
		b.sayAny(thread.Injected, textParts(data.Get("content").Str))
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
		b.addSystem(cmp.Or(data.Get("role").Str, "system"), data.Get("content").Str)
		return
	case "user.message":
		copilotUser(b, data)
		return
	case "assistant.message":
		copilotAnswer(b, data)
		return
	case "tool.execution_complete":
		copilotResult(b, data)
		return
	}
	b.otherRecord(kind, copilotSilent)
}

// copilotResult adds the result of a call, or what came out of a tool that the user ran.
func copilotResult(b *builder, data gjson.Result) {
	r := thread.ToolResult{CallID: data.Get("toolCallId").Str, Outcome: outcomeOf(!data.Get("success").Bool())}
	r.Content = textParts(cmp.Or(firstText(data, "result.content", "error.message"), data.Get("result").Str))
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
	b.say(thread.User, kind, textParts(data.Get("content").Str)...)
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
	if text := data.Get("reasoningText").Str; text != "" {
		b.addPart(thread.Reasoning{Text: text})
	}
	b.addPart(textParts(data.Get("content").Str)...)
	b.addPart(readParts(data.Get("serverTools.items"))...)
	for c := range rawjson.Items(data.Get("toolRequests")) {
		b.addCall(c.Get("toolCallId").Str, c.Get("name").Str, argumentsJSON(c.Get("arguments")))
	}
	if len(b.step.parts) == 0 {
		b.say(thread.Assistant, thread.Plain) // only to count it
	}
	b.flush()
}
