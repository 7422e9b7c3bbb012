package transcript

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// isAmp recognises a thread of Amp by its id and its messages.
func isAmp(v gjson.Result) bool {
	return strings.HasPrefix(v.Get("id").Str, "T-") && (v.Get("created").Type == gjson.Number || v.Get("v").Type == gjson.Number) && v.Get("messages").IsArray()
}

// readAmp reads a thread that Amp kept on this machine, as versions before the spring of 2026 did: messages
// in blocks like those of Anthropic's API, but for the results.
func readAmp(j *importJob) ([]Transcript, error) {
	return j.eachConversation(func(b *builder, v value) {
		b.Name, b.Title = cmp.Or(v.Get("id").Str, b.Name), v.Get("title").Str
		b.Dir = firstText(v.Result, "env.initial.cwd", "env.initial.trees.0.uri.path", "env.initial.trees.0.uri")
		if at, err := url.Parse(b.Dir); err == nil && at.Scheme == "file" {
			b.Dir = at.Path
		}
		for m := range rawjson.Items(v.Get("messages")) {
			b.time = millisTime(m.Get("meta.sentAt").Int())
			b.Model = cmp.Or(m.Get("usage.model").Str, b.Model)
			switch role := m.Get("role").Str; role {
			case "user":
				ampUser(b, m.Get("content"))
				for f := range rawjson.Items(m.Get("fileMentions.files")) {
					b.sayAny(thread.Attached, textParts(strings.TrimSpace(f.Get("uri").Str+"\n"+f.Get("content").Str)))
				}
			case "assistant":
				answerBlocks(b, typed(m.Get("content")), answerSilent, false)
			case "info":
				ampInfo(b, m.Get("content"))
			default:
				b.unknownRole(role)
			}
		}
	})
}

// ampUser adds results, then what the user said.
func ampUser(b *builder, content gjson.Result) {
	var said []thread.Part
	for p := range rawjson.Items(content) {
		if p.Get("type").Str != "tool_result" {
			said = append(said, readParts(p)...)
			continue
		}
		run := p.Get("run")
		status := run.Get("status").Str
		r := thread.ToolResult{CallID: b.openCallID(firstText(p, "toolUseID", "tool_use_id")), Outcome: outcomeOf(status != "done")}
		if status == "rejected-by-user" {
			b.denied[r.CallID] = run.Get("reason").Str
		}
		r.Structured, r.Content = structuredResult(run.Get("result"))
		if len(r.Content) == 0 {
			r.Content = textParts(cmp.Or(firstText(run, "error.message", "error", "reason", "progress.output", "progress"), status))
		}
		b.answer(r)
	}
	b.sayAny(thread.Plain, said)
}

// ampInfo adds the summary that a thread goes on from. No model sees other notes.
func ampInfo(b *builder, content gjson.Result) {
	for p := range rawjson.Items(content) {
		if text := p.Get("summary.summary").Str; text != "" {
			b.summarized(Compaction{}, textParts(text)...)
			continue
		}
		b.report.skip("info/" + p.Get("type").Str)
	}
}
