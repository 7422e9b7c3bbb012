package transcript

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// isCline recognises the messages of Cline, in a list or in a document, by the time that each has.
func isCline(v gjson.Result) bool {
	if v.IsObject() {
		v = v.Get("messages")
	}
	first := v.Get("0")
	return v.IsArray() && first.Get("ts").Type == gjson.Number && first.Get("role").Exists() && first.Get("content").IsArray()
}

// readCline reads a session of Cline: messages much like those of Anthropic's API. Version 4 keeps them
// in a document, versions before in a list.
func readCline(j *importJob) ([]Transcript, error) {
	return j.eachConversation(func(b *builder, v value) {
		b.Name = cmp.Or(v.Get("sessionId").Str, b.Name)
		list := v.Result
		if v.IsObject() {
			list = v.Get("messages")
		}
		for m := range rawjson.Items(list) {
			b.time = millisTime(m.Get("ts").Int())
			if about := m.Get("modelInfo"); about.Exists() {
				b.Model, b.Provider = firstText(about, "modelId", "id"), firstText(about, "providerId", "provider")
			}
			b.report.expects("message", m, "content")
			b.report.members("cline/message", m)
			switch role := m.Get("role").Str; {
			case m.Get("metadata.displayOnly").Bool():
				b.report.skip("message for the user alone")
			case m.Get("metadata.kind").Str == "compaction_summary":
				b.summarized(Compaction{TokensBefore: int(m.Get("metadata.tokensBefore").Int())}, readParts(m.Get("content"))...)
			case role == "user":
				clineUser(b, m.Get("content"))
			case role == "assistant":
				answerBlocks(b, typed(b, m.Get("content")), false)
			default:
				b.unknownRole(role)
			}
		}
	})
}

// clineWords matches the element in which Cline puts what the user says.
var clineWords = lazyregexp.New(`(?s)^\s*<(task|user_input|user_message|feedback)\b[^<>]*>\n?(.*?)\n?</(task|user_input|user_message|feedback)>\s*$`)

// clineUser adds what the user said, the results before it, and what was attached or added to it.
func clineUser(b *builder, content gjson.Result) {
	var said, attached, added []thread.Part
	for kind, p := range typed(b, content) {
		switch {
		case kind == "tool_result":
			r := thread.ToolResult{CallID: b.openCallID(p.Get("tool_use_id").Str), Tool: p.Get("name").Str, Outcome: outcomeOf(p.Get("is_error").Bool())}
			r.Content = readParts(p.Get("content"))
			b.answer(r)
		case kind == "file":
			attached = append(attached, textParts(strings.TrimSpace(p.Get("path").Str+"\n"+partsText(readParts(p.Get("content")))))...)
		case strings.HasPrefix(strings.TrimSpace(p.Get("text").Str), "<environment_details>"):
			added = append(added, readParts(p)...)
		default:
			if m := clineWords().FindStringSubmatch(p.Get("text").Str); m != nil && m[1] == m[3] {
				said = append(said, textParts(m[2])...)
				continue
			}
			said = append(said, readParts(p)...)
		}
	}
	b.sayAny(thread.Plain, said)
	b.sayAny(thread.Attached, attached)
	b.sayAny(thread.Injected, added)
}
