package transcript

import (
	"cmp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readOpenCode reads the output of `opencode export`: one object with the session and its
// messages, each in parts. The parts of an answer hold the calls with their results. After an undo
// the messages from one on, or from a part of it on, stay there until the user goes on; they stand
// beside the conversation.
func readOpenCode(j *importJob) ([]Transcript, error) {
	return j.eachValue(func(v value) ([]Transcript, error) {
		b, undone := j.newBuilder(v), j.newBuilder(v)
		info := v.Get("info")
		b.Name = cmp.Or(info.Get("id").Str, b.Name)
		b.Title, b.Dir = info.Get("title").Str, info.Get("directory").Str
		b.Model, b.Provider = info.Get("model.id").Str, info.Get("model.providerID").Str
		undone.Model, undone.Provider = b.Model, b.Provider
		message, part := info.Get("revert.messageID").Str, info.Get("revert.partID").Str
		to := b
		for m := range rawjson.Items(v.Get("messages")) {
			about, parts := m.Get("info"), m.Get("parts")
			if message != "" && about.Get("id").Str == message {
				kept, rest := splitParts(parts, part)
				if kept.Exists() {
					openCodeMessage(b, about, kept)
				}
				to, parts = undone, rest
			}
			openCodeMessage(to, about, parts)
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
	for p := range rawjson.Items(parts) {
		switch t := p.Get("type").Str; {
		case t == "text" && p.Get("ignored").Bool():
			b.report.skip("text kept from the model")
		case t == "text" && p.Get("synthetic").Bool():
			added = append(added, textParts(p.Get("text").Str)...)
		case t == "text":
			said = append(said, textParts(p.Get("text").Str)...)
		case t == "file":
			said = append(said, fileMedia(p))
		default:
			openCodeOther(b, t)
		}
	}
	if len(said) > 0 || len(added) == 0 {
		b.say(thread.User, thread.Plain, said...)
	}
	if len(added) > 0 {
		b.say(thread.User, thread.Injected, added...)
	}
}

// openCodeSilent are the parts that no model sees.
var openCodeSilent = map[string]bool{
	"step-start": true, "step-finish": true, "snapshot": true, "patch": true, "agent": true, "subtask": true, "retry": true, "compaction": true,
}

// openCodeOther counts a part that is not read.
func openCodeOther(b *builder, kind string) {
	if openCodeSilent[kind] {
		b.report.skip(kind)
	} else {
		b.report.unknown("part/" + kind)
	}
}

// openCodeAnswer adds an answer with its calls. Each step of it is a message.
func openCodeAnswer(b *builder, kind thread.Kind, parts gjson.Result) {
	b.step.kind = kind
	for p := range rawjson.Items(parts) {
		switch t := p.Get("type").Str; t {
		case "text":
			b.addPart(textParts(p.Get("text").Str)...)
		case "reasoning":
			b.addPart(signedReasoning(p))
		case "tool":
			state := p.Get("state")
			id := b.addCall(p.Get("callID").Str, p.Get("tool").Str, argumentsJSON(state.Get("input")))
			openCodeResult(b, id, p.Get("tool").Str, state)
		case "step-start":
			b.flush()
			b.step.kind = kind
			b.report.skip(t)
		default:
			openCodeOther(b, t)
		}
	}
	b.flush()
}

// openCodeResult adds the result that the state of a call holds; none while it runs.
func openCodeResult(b *builder, id, tool string, state gjson.Result) {
	r := thread.ToolResult{CallID: id, Outcome: thread.Success, Completed: millisTime(state.Get("time.end").Int())}
	switch state.Get("status").Str {
	case "completed":
		r.Content = textParts(state.Get("output").Str)
		for f := range rawjson.Items(state.Get("attachments")) {
			r.Content = append(r.Content, mediaPart(f.Get("mime").Str, f.Get("url").Str))
		}
	case "error":
		r.Outcome, r.Content = thread.Failure, textParts(state.Get("error").Str)
		// No error of these tools begins with what a command or a page says.
		r.Denied = (tool == "bash" || tool == "webfetch") && injected.ClaimsDenial(r.Text())
	default:
		return
	}
	b.addResult(r)
}
