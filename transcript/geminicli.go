package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// readGeminiCLI reads a session of Gemini CLI: one object, whose messages hold
// the calls of a step together with their results.
func readGeminiCLI(j *job) ([]Transcript, error) {
	return j.values(func(v value) ([]Transcript, error) {
		if id := v.Get("sessionId").Str; id != "" {
			v.name = id
		}
		b := newBuilder(v.name, j.report)
		b.title = v.Get("summary").String()
		each(v.Get("messages"), func(_, m gjson.Result) bool {
			b.geminiCLI(v.line, m)
			return true
		})
		t, err := b.done()
		if err != nil || t.Thread.Len() == 0 {
			return nil, err
		}
		return []Transcript{t}, nil
	})
}

// geminiCLI adds a message and the results that it holds.
func (b *builder) geminiCLI(line int, m gjson.Result) {
	at := moment(m.Get("timestamp").Str)
	switch kind := m.Get("type").Str; kind {
	case "user":
		b.add(line, at, thread.Plain, thread.Message{Role: thread.User, Parts: geminiText(m.Get("content"))})
	case "gemini":
		if model := m.Get("model").Str; model != "" {
			b.model = model
		}
		msg := thread.Message{Role: thread.Assistant}
		each(m.Get("thoughts"), func(_, t gjson.Result) bool {
			thought := strings.TrimSpace(t.Get("subject").Str + "\n" + t.Get("description").Str)
			msg.Parts = append(msg.Parts, thread.Reasoning{Text: thought})
			return true
		})
		msg.Parts = append(msg.Parts, geminiText(m.Get("content"))...)
		var results []thread.Message
		each(m.Get("toolCalls"), func(_, c gjson.Result) bool {
			call := b.call(c.Get("id").Str, c.Get("name").Str, arguments(c.Get("args")))
			msg.Parts = append(msg.Parts, call)
			if r, ok := geminiResult(call, c); ok {
				results = append(results, r)
			}
			return true
		})
		b.add(line, at, thread.Plain, msg)
		b.add(line, at, thread.Plain, results...)
	case "info", "error", "warning":
		b.report.skip(kind)
	default:
		b.report.unknown(kind)
	}
}

// geminiResult reads what a call gave back.
func geminiResult(call thread.ToolCall, c gjson.Result) (thread.Message, bool) {
	r := thread.ToolResult{CallID: call.ID, Tool: call.Name, Outcome: thread.Success}
	switch c.Get("status").Str {
	case "error", "cancelled":
		r.Outcome = thread.Failure
	}
	result := c.Get("result")
	switch {
	case result.IsArray():
		each(result, func(_, p gjson.Result) bool {
			response := p.Get("functionResponse.response")
			switch out := response.Get("output"); {
			case out.Type == gjson.String:
				r.Content = append(r.Content, text(out.Str)...)
			case response.Get("error").Type == gjson.String:
				r.Content = append(r.Content, text(response.Get("error").Str)...)
			case response.Exists():
				data, content := structured(response)
				r.Structured, r.Content = data, append(r.Content, content...)
			default:
				r.Content = append(r.Content, geminiText(p)...)
			}
			return true
		})
	case result.Type == gjson.String:
		r.Content = text(result.Str)
	case r.Outcome == thread.Success:
		return thread.Message{}, false
	}
	return answer(r), true
}

// geminiText reads a text, a part or a list of parts.
func geminiText(v gjson.Result) []thread.Part {
	switch {
	case v.Type == gjson.String:
		return text(v.Str)
	case v.IsArray():
		var parts []thread.Part
		each(v, func(_, p gjson.Result) bool {
			parts = append(parts, geminiText(p)...)
			return true
		})
		return parts
	case v.Get("text").Type == gjson.String:
		return text(v.Get("text").Str)
	case v.Get("inlineData").Exists():
		return []thread.Part{media(v.Get("inlineData.mimeType").Str, v.Get("inlineData.data").Str)}
	case v.Get("fileData").Exists():
		return []thread.Part{media(v.Get("fileData.mimeType").Str, v.Get("fileData.fileUri").Str)}
	case v.IsObject():
		return []thread.Part{opaque(v)}
	}
	return nil
}
