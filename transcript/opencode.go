package transcript

import (
	"cmp"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readOpenCode reads what `opencode export` writes: one object with the session and its
// messages, each in parts. The parts of an answer hold the calls with their results.
func readOpenCode(j *importJob) ([]Transcript, error) {
	return j.eachValue(func(v value) ([]Transcript, error) {
		info := v.Get("info")
		b := newBuilder(cmp.Or(info.Get("id").Str, v.name), j.report)
		b.Title, b.Dir = info.Get("title").Str, info.Get("directory").Str
		b.Model, b.Provider = info.Get("model.id").Str, info.Get("model.providerID").Str
		for m := range rawjson.Items(v.Get("messages")) {
			b.openCode(v.line, m.Get("info"), m.Get("parts"))
		}
		return b.transcripts()
	})
}

// openCode adds a message, and the results that its parts hold.
func (b *builder) openCode(line int, info, parts gjson.Result) {
	at := millisTime(info.Get("time.created").Int())
	switch role := info.Get("role").Str; role {
	case "user":
		b.openCodeUser(line, at, parts)
	case "assistant":
		if model := info.Get("modelID").Str; model != "" {
			b.Model, b.Provider = model, info.Get("providerID").Str
		}
		kind := thread.Plain
		if info.Get("summary").Bool() { // of a compaction of its own
			kind = thread.Recap
			b.addCompaction(Compaction{}, true)
		}
		b.openCodeAnswer(line, at, kind, parts)
	default:
		b.report.unknown("message/" + role)
	}
}

// openCodeUser adds what stands in the user's name. What the client put there itself
// is a message of its own.
func (b *builder) openCodeUser(line int, at time.Time, parts gjson.Result) {
	said, added := thread.Message{Role: thread.User}, thread.Message{Role: thread.User}
	for p := range rawjson.Items(parts) {
		switch t := p.Get("type").Str; {
		case t == "text" && p.Get("ignored").Bool():
			b.report.skip("text kept from the model")
		case t == "text" && p.Get("synthetic").Bool():
			added.Parts = append(added.Parts, textParts(p.Get("text").Str)...)
		case t == "text":
			said.Parts = append(said.Parts, textParts(p.Get("text").Str)...)
		case t == "file":
			said.Parts = append(said.Parts, fileMedia(p))
		case openCodeSilent[t]:
			b.report.skip(t)
		default:
			b.report.unknown("part/" + t)
		}
	}
	if len(said.Parts) > 0 || len(added.Parts) == 0 {
		b.add(line, at, thread.Plain, said)
	}
	if len(added.Parts) > 0 {
		b.add(line, at, thread.Injected, added)
	}
}

// openCodeSilent are the parts that no model is shown.
var openCodeSilent = map[string]bool{
	"step-start": true, "step-finish": true, "snapshot": true, "patch": true, "agent": true, "subtask": true, "retry": true, "compaction": true,
}

// openCodeAnswer adds an answer with its calls. Each step of it is a message.
func (b *builder) openCodeAnswer(line int, at time.Time, kind thread.Kind, parts gjson.Result) {
	b.step.kind = kind
	for p := range rawjson.Items(parts) {
		switch t := p.Get("type").Str; {
		case t == "text":
			b.addPart(line, at, textParts(p.Get("text").Str)...)
		case t == "reasoning":
			b.addPart(line, at, signedReasoning(p))
		case t == "tool":
			state := p.Get("state")
			call := b.newCall(p.Get("callID").Str, p.Get("tool").Str, argumentsJSON(state.Get("input")))
			b.addPart(line, at, call)
			if r, ok := openCodeResult(call, state); ok {
				b.addResult(line, at, r)
			}
		case t == "step-start":
			b.flush()
			b.step.kind = kind
			b.report.skip(t)
		case openCodeSilent[t]:
			b.report.skip(t)
		default:
			b.report.unknown("part/" + t)
		}
	}
	b.flush()
}

// openCodeResult is the result that the state of a call holds; none while it runs.
func openCodeResult(call thread.ToolCall, state gjson.Result) (thread.Message, bool) {
	r := thread.ToolResult{CallID: call.ID, Tool: call.Name, Outcome: thread.Success}
	switch state.Get("status").Str {
	case "completed":
		r.Content = textParts(state.Get("output").Str)
		for f := range rawjson.Items(state.Get("attachments")) {
			r.Content = append(r.Content, mediaPart(f.Get("mime").Str, f.Get("url").Str))
		}
	case "error":
		r.Outcome = thread.Failure
		r.Content = textParts(state.Get("error").Str)
	default:
		return thread.Message{}, false
	}
	m := toolMessage(r)
	m.Time = millisTime(state.Get("time.end").Int())
	return m, true
}
