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
	return j.eachConversation(func(b *builder, v value) {
		b.Name = cmp.Or(v.Get("sessionId").Str, b.Name)
		b.Title = v.Get("summary").String()
		for m := range rawjson.Items(v.Get("messages")) {
			b.at(v.line, parseTime(m.Get("timestamp").Str))
			b.geminiCLI(m)
		}
	})
}

// geminiCLI adds a message and the results that it holds.
func (b *builder) geminiCLI(m gjson.Result) {
	switch kind := m.Get("type").Str; kind {
	case "user":
		b.say(thread.User, thread.Plain, readParts(m.Get("content"))...)
	case "gemini":
		b.Model = cmp.Or(m.Get("model").Str, b.Model)
		for t := range rawjson.Items(m.Get("thoughts")) {
			b.addPart(thread.Reasoning{Text: strings.TrimSpace(t.Get("subject").Str + "\n" + t.Get("description").Str)})
		}
		b.addPart(readParts(m.Get("content"))...)
		for c := range rawjson.Items(m.Get("toolCalls")) {
			id := b.addCall(c.Get("id").Str, c.Get("name").Str, argumentsJSON(c.Get("args")))
			b.geminiResult(id, c)
		}
		if len(b.step.parts) == 0 {
			b.say(thread.Assistant, thread.Plain) // only to count it
		}
		b.flush()
	case "info", "error", "warning":
		b.report.skip(kind)
	default:
		b.report.unknown(kind)
	}
}

// geminiResult adds the result of a call, if it has one yet.
func (b *builder) geminiResult(id string, c gjson.Result) {
	status := c.Get("status").Str
	r := thread.ToolResult{CallID: id, Outcome: outcomeOf(status == "error" || status == "cancelled")}
	result := c.Get("result")
	switch {
	case result.IsArray():
		for p := range rawjson.Items(result) {
			response := p.Get("functionResponse.response")
			text := firstText(response, "output", "error")
			switch {
			case text != "":
				r.Content = append(r.Content, textParts(text)...)
			case response.Get("output").Type == gjson.String || response.Get("error").Type == gjson.String: // said nothing
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
		return
	}
	b.addResult(r)
}
