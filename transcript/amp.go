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
			b.report.expects("message", m, "content")
			switch role := m.Get("role").Str; role {
			case "user":
				ampUser(b, m.Get("content"))
				for f := range rawjson.Items(m.Get("fileMentions.files")) {
					b.sayAny(thread.Attached, textParts(strings.TrimSpace(f.Get("uri").Str+"\n"+f.Get("content").Str)))
				}
			case "assistant":
				answerBlocks(b, typed(b, m.Get("content")), false)
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
		b.report.expects("result", p, "run")
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

// ampInfo adds the summary that a thread goes on from, and what the model sees in the user's name: commands that the user
// ran, and notes.
func ampInfo(b *builder, content gjson.Result) {
	for p := range geminiParts(content) {
		switch kind := p.Get("type").Str; {
		case p.Get("summary").Exists():
			b.summarized(Compaction{}, firstParts(p, "summary.summary", "summary")...)
		case p.Get("hidden").Bool():
			b.report.skip(kind + " kept from the model")
		case kind == "manual_bash_invocation":
			result := p.Get("toolRun.result")
			output := partsText(firstParts(result, "output", "stdout"))
			b.sayAny(thread.Attached, textParts(shellText(firstText(p, "args.cmd", "args.command"), output, false, result.Get("exitCode"))))
		case kind == "text":
			b.sayAny(thread.Injected, readParts(p))
		default:
			b.report.unknown("info/" + kind)
		}
	}
}
