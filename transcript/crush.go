package transcript

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readCrush reads a session of Crush: the rows of its database in one document, or what its command
// `session show --json` prints. The summary of a compaction is an answer with a mark.
func readCrush(j *importJob) ([]Transcript, error) {
	return j.eachConversation(func(b *builder, v value) {
		b.Name = cmp.Or(firstText(v.Result, "id", "meta.uuid"), b.Name)
		b.Title, b.Dir = firstText(v.Result, "title", "meta.title"), v.Get("directory").Str
		b.relayed = isSubagent(b.format, v.Result)
		for m := range rawjson.Items(v.Get("messages")) {
			crushMessage(b, m, v.Get("summary_message_id").Str)
		}
	})
}

// crushMessage adds a message. Versions before the mark named only the message of the last summary.
func crushMessage(b *builder, m gjson.Result, last string) {
	b.time = unixTime(m.Get("created_at").Int())
	if at := m.Get("created").Str; at != "" {
		b.time = parseTime(at)
	}
	marked := m.Get("is_summary_message").Int() > 0 || last != "" && m.Get("id").Str == last
	summary := marked && !strings.Contains(m.Get(`parts.#(type=="finish").data.reason`).Str, "error")
	b.report.expects("message", m, "parts")
	b.report.members("crush/message", m)
	switch role := m.Get("role").Str; {
	case role == "user":
		crushUser(b, m)
	case role == "assistant" && summary:
		var said []thread.Part
		for kind, p := range typed(b, m.Get("parts")) {
			if kind == "text" {
				said = append(said, readParts(p)...)
			}
		}
		b.summarized(Compaction{}, said...)
	case role == "assistant":
		b.Model, b.Provider = cmp.Or(m.Get("model").Str, b.Model), cmp.Or(m.Get("provider").Str, b.Provider)
		answerBlocks(b, typed(b, m.Get("parts")), true)
	case role == "tool":
		for kind, p := range typed(b, m.Get("parts")) {
			if kind != "tool_result" {
				b.otherPart(kind)
				continue
			}
			r := thread.ToolResult{CallID: b.openCallID(p.Get("tool_call_id").Str), Tool: p.Get("name").Str, Outcome: outcomeOf(p.Get("is_error").Bool()), Content: readParts(p.Get("content"))}
			if data := p.Get("data").Str; data != "" {
				r.Content = append(r.Content, mediaPart(p.Get("mime_type").Str, data))
			}
			b.answer(r)
		}
	default:
		b.unknownRole(role)
	}
}

// crushUser adds what the user said, and what was attached to it: texts, and commands that the user ran.
func crushUser(b *builder, m gjson.Result) {
	var said, attached []thread.Part
	for kind, p := range typed(b, m.Get("parts")) {
		switch kind {
		case "text":
			said = append(said, readParts(p)...)
		case "image_url":
			said = append(said, mediaPart("image", p.Get("url").Str))
		case "binary":
			mime, data := firstText(p, "MIMEType", "mime_type"), p.Get("Data").Str
			if text, err := base64.StdEncoding.DecodeString(data); err == nil && strings.HasPrefix(mime, "text/") {
				attached = append(attached, textParts(strings.TrimSpace(p.Get("Path").Str+"\n"+string(text)))...)
				continue
			}
			if data == "" {
				b.report.unknown("part/binary without data")
				continue
			}
			file := mediaPart(mime, data)
			file.Name = p.Get("Path").Str
			said = append(said, file)
		case "shell_command":
			attached = append(attached, textParts(shellText(p.Get("command").Str, p.Get("output").Str, false, p.Get("exit_code")))...)
		default:
			b.otherPart(kind)
		}
	}
	if len(said) > 0 || len(attached) == 0 {
		b.say(thread.User, thread.Plain, said...)
	}
	b.sayAny(thread.Attached, attached)
}
