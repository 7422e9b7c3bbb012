package transcript

import (
	"cmp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readGoose reads a session of Goose: its export, which is one document, or a file of before its database,
// where a line about the session comes first and each message has its own.
func readGoose(j *importJob) ([]Transcript, error) {
	lines := j.newBuilder(value{name: j.name})
	found, err := j.eachValue(func(v value) ([]Transcript, error) {
		switch list := v.Get("conversation"); {
		case list.IsArray():
			b := j.newBuilder(value{name: cmp.Or(v.Get("id").Str, j.name)})
			b.Title, b.Dir = firstText(v.Result, "name", "description"), v.Get("working_dir").Str
			b.relayed = isSubagent(b.format, v.Result)
			for m := range rawjson.Items(list) {
				gooseMessage(b, m)
			}
			return b.transcripts()
		case v.Get("role").Exists():
			lines.line = v.line
			gooseMessage(lines, v.Result)
		default:
			lines.Title, lines.Dir = v.Get("description").Str, v.Get("working_dir").Str
			j.report.skip("session")
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	one, err := lines.transcripts()
	return append(found, one...), err
}

// gooseMessage adds a message. What the user does not see is the agent's own: after a compaction a summary, and an answer
// of nobody's to it. What neither sees was copied behind them.
func gooseMessage(b *builder, m gjson.Result) {
	b.time = unixTime(m.Get("created").Int())
	sees := func(who string) bool { return m.Get("metadata."+who).Type != gjson.False }
	hidden := !sees("userVisible")
	b.report.expects("message", m, "content")
	b.report.members("goose/message", m)
	switch role := m.Get("role").Str; {
	case hidden && !sees("agentVisible"):
		b.report.skip("message that nobody sees")
	case role == "assistant" && hidden:
		if n := len(b.messages) - 1; n >= 0 && b.messages[n].Kind == thread.Injected && b.messages[n].Role == thread.User {
			b.addCompaction(Compaction{}, true)
			b.Compactions[len(b.Compactions)-1].At, b.messages[n].Kind = n, thread.Recap
		}
		b.say(thread.Assistant, thread.Injected, readParts(m.Get("content"))...)
	case role == "assistant":
		answerBlocks(b, typed(b, m.Get("content")), false)
	case role == "user" && hidden:
		b.say(thread.User, thread.Injected, readParts(m.Get("content"))...)
	case role == "user":
		gooseUser(b, m.Get("content"))
	default:
		b.unknownRole(role)
	}
}

// gooseUser adds results, then what the user said.
func gooseUser(b *builder, content gjson.Result) {
	var said []thread.Part
	for kind, p := range typed(b, content) {
		switch {
		case kind == "toolResponse":
			b.answer(gooseResult(b, p))
		case known["goose"][kind]:
			b.report.skip(kind)
		default:
			said = append(said, readParts(p)...)
		}
	}
	b.sayAny(thread.Plain, said)
}

// gooseResult reads a result: an error, or content of the Model Context Protocol, in older versions without
// the object around it. What is for the user alone no model sees.
func gooseResult(b *builder, p gjson.Result) thread.ToolResult {
	got := p.Get("toolResult")
	r := thread.ToolResult{CallID: b.openCallID(p.Get("id").Str), Outcome: outcomeOf(got.Get("status").Str == "error" || got.Get("value.isError").Bool())}
	content := got.Get("value")
	if content.IsObject() {
		content = content.Get("content")
	}
	for block := range rawjson.Items(content) {
		audience := block.Get("annotations.audience").Array()
		switch {
		case len(audience) > 0 && !slices.ContainsFunc(audience, func(a gjson.Result) bool { return a.Str == "assistant" }):
			b.report.skip("content for the user alone")
		default:
			r.Content = append(r.Content, readParts(block)...)
		}
	}
	if r.Content = append(r.Content, readParts(got.Get("error"))...); !content.Exists() && len(r.Content) == 0 {
		r.Content = readParts(got)
	}
	return r
}
