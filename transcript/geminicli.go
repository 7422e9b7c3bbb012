package transcript

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readGeminiCLI reads a session of Gemini CLI: one object, whose messages hold
// the calls of a step together with their results.
func readGeminiCLI(j *importJob) ([]Transcript, error) {
	return j.eachValue(func(v value) ([]Transcript, error) {
		b := newBuilder(cmp.Or(v.Get("sessionId").Str, v.name), j.report)
		b.Title = v.Get("summary").String()
		for m := range rawjson.Items(v.Get("messages")) {
			b.geminiCLI(v.line, m)
		}
		return b.transcripts()
	})
}

// geminiCLI adds a message and the results that it holds.
func (b *builder) geminiCLI(line int, m gjson.Result) {
	at := parseTime(m.Get("timestamp").Str)
	switch kind := m.Get("type").Str; kind {
	case "user":
		b.add(line, at, thread.Plain, thread.Message{Role: thread.User, Parts: readParts(m.Get("content"))})
	case "gemini":
		b.Model = cmp.Or(m.Get("model").Str, b.Model)
		for t := range rawjson.Items(m.Get("thoughts")) {
			thought := strings.TrimSpace(t.Get("subject").Str + "\n" + t.Get("description").Str)
			b.addPart(line, at, thread.Reasoning{Text: thought})
		}
		b.addPart(line, at, readParts(m.Get("content"))...)
		for c := range rawjson.Items(m.Get("toolCalls")) {
			call := b.newCall(c.Get("id").Str, c.Get("name").Str, argumentsJSON(c.Get("args")))
			b.addPart(line, at, call)
			if r, ok := geminiResult(call, c); ok {
				b.addResult(line, at, r)
			}
		}
		if len(b.step.parts) == 0 {
			b.add(line, at, thread.Plain, thread.Message{Role: thread.Assistant}) // it is counted
		}
		b.flush()
	case "info", "error", "warning":
		b.report.skip(kind)
	default:
		b.report.unknown(kind)
	}
}

// geminiResult reads what a call gave back.
func geminiResult(call thread.ToolCall, c gjson.Result) (thread.Message, bool) {
	status := c.Get("status").Str
	r := thread.ToolResult{CallID: call.ID, Tool: call.Name, Outcome: outcomeOf(status == "error" || status == "cancelled")}
	result := c.Get("result")
	switch {
	case result.IsArray():
		for p := range rawjson.Items(result) {
			response := p.Get("functionResponse.response")
			switch out := response.Get("output"); {
			case out.Type == gjson.String:
				r.Content = append(r.Content, textParts(out.Str)...)
			case response.Get("error").Type == gjson.String:
				r.Content = append(r.Content, textParts(response.Get("error").Str)...)
			case response.Exists():
				data, content := structuredResult(response)
				r.Structured, r.Content = data, append(r.Content, content...)
			default:
				r.Content = append(r.Content, readParts(p)...)
			}
		}
	case result.Type == gjson.String:
		r.Content = textParts(result.Str)
	case r.Outcome == thread.Success:
		return thread.Message{}, false
	}
	return toolMessage(r), true
}
