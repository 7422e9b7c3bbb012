package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// cursorTime matches the time that Cursor puts before what the user says.
var cursorTime = lazyregexp.New(`^\s*<timestamp>[^<]*</timestamp>\s*`)

// cursorBlock matches the beginning of what Cursor adds: an element such as git_status.
var cursorBlock = lazyregexp.New(`^<([a-z]+(?:_[a-z]+)+)[^>]*>`)

// isCursorBlock reports whether a text is one element that Cursor added.
func isCursorBlock(text string) bool {
	text = strings.TrimSpace(text)
	begin := cursorBlock().FindStringSubmatch(text)
	return begin != nil && begin[1] != "user_query" && strings.HasSuffix(text, "</"+begin[1]+">")
}

// cursorQuery splits what the user said from what Cursor put around it. Files come before it, and may hold the
// same tags.
func cursorQuery(text string) (query, around string, ok bool) {
	const opening, closing = "<user_query>", "</user_query>"
	text = cursorTime().ReplaceAllString(text, "")
	end := strings.LastIndex(text, closing)
	from := strings.LastIndex("\n"+text[:max(end, 0)], "\n"+opening)
	if from < 0 {
		return "", "", false
	}
	return strings.Trim(text[from+len(opening):end], "\n"), strings.TrimSpace(text[:from] + text[end+len(closing):]), true
}

// readCursor reads a transcript of Cursor, which keeps neither results nor times, and calls without ids.
func readCursor(j *importJob) ([]Transcript, error) {
	b := j.newBuilder(value{name: j.name})
	err := j.lines(func(v gjson.Result, number int) {
		b.line = number
		content := v.Get("message.content")
		switch role := v.Get("role").Str; {
		case role != "" && !content.Exists():
			b.report.unknown(role + " without message.content")
		case role == "user":
			var said []thread.Part
			parts := slices.Collect(geminiParts(content))
			asks := slices.ContainsFunc(parts, func(p gjson.Result) bool { _, _, ok := cursorQuery(p.Get("text").Str); return ok })
			for _, p := range parts {
				text := p.Get("text").Str
				query, around, ok := cursorQuery(text)
				added, how := textParts(around), thread.Injected
				switch {
				case ok:
					said = append(said, textParts(query)...)
				case text != "" && asks, isCursorBlock(cmp.Or(text, p.Str)):
					around, added = cmp.Or(text, p.Str), readParts(p)
				default:
					said = append(said, readParts(p)...)
				}
				if strings.HasPrefix(strings.TrimSpace(around), "<attached_files>") { // the user mentioned them
					how = thread.Attached
				}
				b.sayAny(how, added)
			}
			b.sayAny(thread.Plain, said)
		case role == "assistant":
			from := len(b.messages)
			answerBlocks(b, typed(b, content), false)
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
