package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// isCursor recognises a line of Cursor: the role stands beside the message.
func isCursor(v gjson.Result) bool {
	return v.Get("role").Type == gjson.String && v.Get("message.content").Exists() && !v.Get("type").Exists()
}

// cursorTime matches the time that Cursor puts before what the user says.
var cursorTime = lazyregexp.New(`^\s*<timestamp>[^<]*</timestamp>`)

// readCursor reads a transcript of Cursor, which keeps neither results nor times, and calls without ids.
func readCursor(j *importJob) ([]Transcript, error) {
	b := j.newBuilder(value{name: j.name})
	err := j.lines(func(v gjson.Result, number int) {
		b.line = number
		content := v.Get("message.content")
		switch role := v.Get("role").Str; {
		case role == "user":
			var said, added []thread.Part
			for p := range geminiParts(content) {
				before, rest, found := strings.Cut(p.Get("text").Str, "<user_query>")
				end := strings.LastIndex(rest, "</user_query>")
				if !found || end < 0 {
					said = append(said, readParts(p)...)
					continue
				}
				said = append(said, textParts(strings.Trim(rest[:end], "\n"))...)
				around := cursorTime().ReplaceAllString(before, "") + rest[end+len("</user_query>"):]
				added = append(added, textParts(strings.TrimSpace(around))...)
			}
			b.sayAny(thread.Injected, added)
			b.sayAny(thread.Plain, said)
		case role == "assistant":
			from := len(b.messages)
			anthropicAnswer(b, content)
			for _, m := range b.messages[from:] {
				for _, c := range m.Calls() {
					b.answer(thread.ToolResult{CallID: c.ID, Content: textParts(injected.NoResult)})
				}
			}
			eachResult(b.messages[from:], func(r *thread.ToolResult) { r.Outcome = "" })
		case role != "":
			b.unknownRole(role)
		case v.Get("type").Str == "turn_ended":
			b.report.skip("turn_ended")
		default:
			b.report.unknown(v.Get("type").Str)
		}
	})
	if err != nil {
		return nil, err
	}
	return b.transcripts()
}
