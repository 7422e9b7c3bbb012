package transcript

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// readOpenCode reads the output of `opencode export`: one object with the session and its
// messages, each in parts. The parts of an answer hold the calls with their results. After an undo
// the messages from one on, or from a part of it on, stay there until the user goes on; they stand
// beside the conversation.
func readOpenCode(j *importJob) ([]Transcript, error) {
	return j.eachValue(func(v value) ([]Transcript, error) {
		b, undone := j.newBuilder(v), j.newBuilder(v)
		b.format, undone.format = "opencode", "opencode" // of Kilo's too: it has opencode's tools
		info := v.Get("info")
		b.relayed = isSubagent(b.format, v.Result)
		undone.relayed = b.relayed
		b.Name = cmp.Or(info.Get("id").Str, b.Name)
		b.Title, b.Dir = info.Get("title").Str, firstText(info, "directory", "location.directory")
		if from := info.Get("fork_session_id").Str; from != "" {
			b.report.warn(v.line, "it was forked from the session %s; what it did not copy from there is not read", from)
		}
		b.Model, b.Provider = info.Get("model.id").Str, info.Get("model.providerID").Str
		undone.Model, undone.Provider = b.Model, b.Provider
		message, part := info.Get("revert.messageID").Str, info.Get("revert.partID").Str
		to := b
		for m := range rawjson.Items(v.Get("messages")) {
			about, parts := m.Get("info"), m.Get("parts")
			if !about.Exists() { // of version 2
				if message != "" && m.Get("id").Str == message {
					to = undone
				}
				openCode2Message(to, m)
				continue
			}
			j.report.expects("message", m, "parts")
			if message != "" && about.Get("id").Str == message {
				kept, rest := splitParts(parts, part)
				if kept.Exists() {
					openCodeMessage(b, about, kept)
				}
				to, parts = undone, rest
			}
			openCodeMessage(to, about, parts)
		}
		if message != "" && to == b {
			b.report.warn(v.line, "the user went back to the message %s, which is not there; nothing was taken back", message)
		}
		return b.transcripts(undone)
	})
}

// splitParts divides the parts of a message before the one that an undo went back to. Without that
// part all of them are undone.
func splitParts(parts gjson.Result, id string) (kept, rest gjson.Result) {
	all := parts.Array()
	at := slices.IndexFunc(all, func(p gjson.Result) bool { return id != "" && p.Get("id").Str == id })
	if at <= 0 {
		return kept, parts
	}
	list := func(some []gjson.Result) gjson.Result {
		return gjson.Parse(rawjson.ArrayOf(some, func(p gjson.Result) string { return p.Raw }))
	}
	return list(all[:at]), list(all[at:])
}

// openCodeMessage adds a message, and the results that its parts hold.
func openCodeMessage(b *builder, info, parts gjson.Result) {
	b.time = millisTime(info.Get("time.created").Int())
	switch role := info.Get("role").Str; role {
	case "user":
		openCodeUser(b, parts)
	case "assistant":
		if model := info.Get("modelID").Str; model != "" {
			b.Model, b.Provider = model, info.Get("providerID").Str
		}
		kind := thread.Plain
		if info.Get("summary").Bool() { // of a compaction of its own
			kind = thread.Recap
			b.addCompaction(Compaction{}, true)
		}
		openCodeAnswer(b, kind, parts)
	default:
		b.report.unknown("message/" + role)
	}
}

// openCodeUser adds a user message. Text that the client itself added becomes a message
// of its own.
func openCodeUser(b *builder, parts gjson.Result) {
	var said, added []thread.Part
	how := thread.Injected
	for p := range rawjson.Items(parts) {
		b.report.members("opencode/"+p.Get("type").Str, p)
		switch t := p.Get("type").Str; {
		case t == "text" && p.Get("ignored").Bool():
			b.report.skip("text kept from the model")
		case t == "text" && p.Get("synthetic").Bool():
			added = append(added, textParts(p.Get("text").Str)...)
			if strings.HasPrefix(p.Get("text").Str, "Called the ") { // for a file that the user mentioned
				how = thread.Attached
			}
		case t == "text", t == "file":
			said = append(said, readParts(p)...)
		default:
			b.otherPart(t)
		}
	}
	if len(said) > 0 || len(added) == 0 {
		b.say(thread.User, thread.Plain, said...)
	}
	b.sayAny(how, added)
}

// openCode2Message adds a message of version 2. Its answers hold their calls with the results.
func openCode2Message(b *builder, m gjson.Result) {
	b.time = millisTime(m.Get("time.created").Int())
	if model := m.Get("model"); model.IsObject() {
		b.Model, b.Provider = model.Get("id").Str, model.Get("providerID").Str
	}
	b.report.members("opencode/message."+m.Get("type").Str, m)
	text := readParts(m.Get("text"))
	switch kind := m.Get("type").Str; kind {
	case "user":
		b.report.expects(kind, m, "text")
		for f := range rawjson.Items(m.Get("files")) {
			text = append(text, readParts(f)...)
		}
		b.say(thread.User, thread.Plain, text...)
	case "synthetic", "system":
		b.say(thread.User, thread.Injected, text...)
	case "shell": // the user ran it
		b.say(thread.User, thread.Attached, textParts(shellText(m.Get("command").Str, firstText(m, "output.output", "output"), false, m.Get("exit")))...)
	case "compaction":
		b.report.expects(kind, m, "summary")
		b.summarized(Compaction{Trigger: m.Get("reason").Str}, readParts(m.Get("summary"))...)
	case "assistant":
		for p := range rawjson.Items(m.Get("content")) {
			if p.Get("type").Str != "tool" && len(b.step.results) > 0 { // what a model says after results is another answer
				b.flush()
			}
			openCodePart(b, p, "id", "name")
		}
		b.flush()
	case "agent-switched", "model-switched", "idle":
		b.report.skip(kind)
	default:
		b.report.unknown("message/" + kind)
	}
}

// openCodePart adds what a model said, or a call with its result: the members say its id and its tool.
func openCodePart(b *builder, p gjson.Result, id, tool string) {
	b.report.members("opencode/"+p.Get("type").Str, p)
	switch kind := p.Get("type").Str; kind {
	case "text":
		b.addPart(readParts(p)...)
	case "reasoning":
		b.addPart(reasoningParts(p, signedReasoning(p))...)
	case "tool":
		state, name := p.Get("state"), p.Get(tool).Str
		openCodeResult(b, b.addCall(p.Get(id).Str, name, argumentsJSON(state.Get("input"))), name, state)
	default:
		b.otherPart(kind)
	}
}

// openCodeAnswer adds an answer with its calls. Each step of it is a message.
func openCodeAnswer(b *builder, kind thread.Kind, parts gjson.Result) {
	b.step.kind = kind
	for p := range rawjson.Items(parts) {
		if p.Get("type").Str == "step-start" {
			b.flush()
			b.step.kind = kind
		}
		openCodePart(b, p, "callID", "tool")
	}
	b.flush()
}

// openCodeResult adds the result that the state of a call holds; none while it runs.
func openCodeResult(b *builder, id, tool string, state gjson.Result) {
	r := thread.ToolResult{CallID: id, Outcome: thread.Success, Completed: millisTime(state.Get("time.end").Int())}
	switch status := state.Get("status").Str; status {
	case "pending", "running", "streaming":
		return
	case "error":
		r.Outcome, r.Content = thread.Failure, firstParts(state, "error.message", "error", "output", "content")
		// No error of these tools begins with what a command or a page says.
		r.Denied = (tool == "bash" || tool == "webfetch") && injected.ClaimsDenial(r.Text())
	default:
		if status != "completed" {
			b.report.unknown("result that is " + cmp.Or(status, "without status"))
		}
		for _, path := range []string{"output", "content", "attachments"} {
			r.Content = append(r.Content, readParts(state.Get(path))...)
		}
	}
	b.addResult(r)
}

// isKilo recognises an export of Kilo: it shows what the editor had open, or has a version that opencode has not.
func isKilo(v gjson.Result) bool {
	return v.Get("info.id").Exists() && (v.Get("messages.0.info.editorContext").Exists() || v.Get("info.version").Str >= "7")
}

// openCodeForks are opencode and its fork: the agent that answers by default, and the version that these files
// were tried with.
var openCodeForks = map[Format]struct{ agent, version string }{"opencode": {"build", "1.18.33"}, "kilo": {"code", "7.7.9"}}

// openCode writes a file for `opencode import`: one object in the form of `opencode export`. The
// import sets the project and the directory anew.
func (w *writer) openCode(messages []thread.Message) {
	begun, fork := w.session.Time.UTC(), openCodeForks[w.format]
	w.out.ID = w.openCodeID("ses", ^begun.UnixMilli())
	w.out.Path = w.out.ID + ".json"
	provider := w.provider()
	title := cmp.Or(w.session.Title, "Compacted session")
	model := map[string]any{"providerID": provider, "modelID": w.session.Model}
	all := []any{}
	user := ""
	add := func(m *thread.Message, at time.Time, info map[string]any, answered map[string]thread.ToolResult) string {
		id := w.openCodeID("msg", begun.UnixMilli())
		info["id"], info["sessionID"], info["agent"] = id, w.out.ID, fork.agent
		info["time"] = map[string]any{"created": at.UnixMilli(), "completed": at.UnixMilli()}
		parts := w.openCodeParts(m, at, answered)
		for _, p := range parts {
			w.openCodePlace(p, id)
			if state, call := p["state"].(map[string]any); call {
				files, _ := state["attachments"].([]map[string]any)
				for _, f := range files {
					w.openCodePlace(f, id)
				}
			}
		}
		all = append(all, map[string]any{"info": info, "parts": parts})
		return id
	}
	open := map[string]bool{} // the calls of the last answer
	for i := range messages {
		m := &messages[i]
		at := w.timeOf(m)
		r, result := m.Result()
		if result && !open[r.CallID] { // its call is not there
			parts := slices.DeleteFunc(slices.Clone(r.Content), isText)
			parts = slices.Insert(parts, 0, thread.Part(thread.Text{Text: ownformat.ResultText(r.Tool, r.Text())}))
			m, result = &thread.Message{Role: thread.Assistant, Kind: thread.Recap, Parts: parts}, false
		} else if !result {
			clear(open)
		}
		switch {
		case m.Role == thread.Assistant:
			for _, c := range m.Calls() {
				open[c.ID] = true
			}
			add(m, at, map[string]any{
				"role": "assistant", "parentID": user, "providerID": provider, "modelID": w.session.Model, "mode": fork.agent,
				"path": map[string]string{"cwd": w.session.Dir, "root": w.session.Dir}, "cost": 0, "finish": stopWord(m, "stop", "tool-calls"),
				"tokens": map[string]any{"input": 0, "output": 0, "reasoning": 0, "cache": map[string]int{"read": 0, "write": 0}},
			}, resultsByCall(messages[i+1:]))
		case result: // stands in the answer that asked for it
			delete(open, r.CallID)
		default:
			user = add(m, at, map[string]any{"role": "user", "model": model}, nil)
		}
	}
	w.value(map[string]any{
		"info": map[string]any{
			"id": w.out.ID, "slug": "palimpsest-" + w.session.ID, "projectID": "global", "directory": w.session.Dir, "title": title,
			"version": fork.version, "time": map[string]int64{"created": begun.UnixMilli(), "updated": begun.UnixMilli()},
		},
		"messages": all,
	}, "  ")
}

// openCodeID is the next id of a kind: a time in its upper bits, which keeps ids in order, then a
// count, and a hash that no other session has.
func (w *writer) openCodeID(kind string, millis int64) string {
	sum := w.hash(w.lines)
	id := fmt.Sprintf("%s_%012x%s", kind, uint64(millis<<12+int64(w.lines))&(1<<48-1), hex.EncodeToString(sum[:7]))
	w.lines++
	return id
}

// openCodePlace gives a part, or a file of a result, its ids.
func (w *writer) openCodePlace(part map[string]any, message string) {
	part["id"], part["sessionID"], part["messageID"] = w.openCodeID("prt", w.session.Time.UTC().UnixMilli()), w.out.ID, message
}

// openCodeParts writes the parts of a message. The calls of an answer hold their results; an
// interrupted call is a failure there.
func (w *writer) openCodeParts(m *thread.Message, at time.Time, answered map[string]thread.ToolResult) []map[string]any {
	span := map[string]int64{"start": at.UnixMilli(), "end": at.UnixMilli()}
	return w.blocks(m.Parts, func(p thread.Part) map[string]any {
		switch p := p.(type) {
		case thread.Text:
			part := map[string]any{"type": "text", "text": p.Text}
			if m.IsAdded() {
				part["synthetic"] = true
			}
			return part
		case thread.Reasoning:
			part := map[string]any{"type": "reasoning", "text": p.Text, "time": span}
			if p.API == wire.Anthropic && p.Signature != "" {
				part["metadata"] = map[string]any{"anthropic": map[string]string{"signature": p.Signature}}
			}
			return part
		case thread.ToolCall:
			return map[string]any{"type": "tool", "callID": p.ID, "tool": p.Name, "state": w.openCodeState(p, answered, span)}
		}
		return openCodeFile(p)
	})
}

// openCodeState is how a call ended.
func (w *writer) openCodeState(call thread.ToolCall, answered map[string]thread.ToolResult, span map[string]int64) map[string]any {
	state := map[string]any{"input": json.RawMessage(rawjson.AsObject(call.Arguments)), "time": span}
	r, ok := answered[call.ID]
	others := slices.DeleteFunc(slices.Clone(r.Content), isText)
	if !ok || r.Outcome == thread.Failure {
		state["status"], state["error"] = "error", r.Text()
		if !ok {
			state["error"] = "The call was interrupted."
		}
		w.blocks(others, func(thread.Part) map[string]any { return nil }) // an error holds no files
		return state
	}
	state["status"], state["title"], state["metadata"] = "completed", call.Name, map[string]any{}
	state["output"] = r.Text()
	if files := w.blocks(others, openCodeFile); len(files) > 0 {
		state["attachments"] = files
	}
	return state
}

// openCodeFile is an image in a message; nil for what is none.
func openCodeFile(p thread.Part) map[string]any {
	m, _ := p.(thread.Media)
	mime, data, ok := inlineImage(m)
	if !ok {
		return nil
	}
	return map[string]any{"type": "file", "mime": mime, "filename": cmp.Or(m.Name, "image"), "url": "data:" + mime + ";base64," + data}
}
