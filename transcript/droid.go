package transcript

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// isDroid recognises a line of a session of Factory's Droid: pi's lines are like it, but for the blocks
// of calls and results, which Droid has as Anthropic has them, and the time within each of pi's messages.
func isDroid(v gjson.Result) bool {
	switch v.Get("type").Str {
	case "session_start":
		return v.Get("id").Exists()
	case "message":
		blocks := v.Get("message.content.#.type").Raw
		own := v.Get("message.role").Exists() && v.Get("parentId").Exists() && !v.Get("message.timestamp").Exists()
		return strings.Contains(blocks, `"tool_`) || own && !strings.Contains(blocks, `"toolCall"`)
	}
	return false
}

// readDroid reads a session of Droid: a tree of messages in the form of Anthropic's API.
func readDroid(j *importJob) ([]Transcript, error) {
	var head gjson.Result
	return j.readTree("id", "parentId", func(r record) bool {
		kind := r.Get("type").Str
		if kind == "session_start" {
			head = r.Result
		}
		if known["droid"][kind] {
			j.report.skip(kind)
		}
		return known["droid"][kind]
	}, func(entries []record) *builder {
		b := j.newBuilder(value{name: cmp.Or(head.Get("id").Str, j.name)})
		b.relayed = isSubagent(b.format, head)
		b.Title, b.Dir = cmp.Or(head.Get("sessionTitle").Str, head.Get("title").Str), head.Get("cwd").Str
		for _, e := range entries {
			b.at(e.line, parseTime(e.Get("timestamp").Str))
			droidEntry(b, e)
		}
		return b
	})
}

func droidEntry(b *builder, e record) {
	switch kind := e.Get("type").Str; kind {
	case "message":
		m := e.Get("message")
		b.report.members("droid/message", m)
		b.report.expects(kind, m, "content")
		b.Model = cmp.Or(m.Get("model").Str, b.Model)
		role, kind, seen := m.Get("role").Str, thread.Plain, m.Get("visibility").Str
		results := strings.Contains(m.Get("content.#.type").Raw, `"tool_result"`)
		switch {
		case (seen == "user_only" || m.Get("hookEventName").Exists()) && !results:
			b.report.skip("message for the user alone")
			return
		case role == "system", seen == "llm_only" && role == "user" && !results: // the program's own
			role, kind = "user", thread.Injected
		}
		b.anthropicMessage(role, kind, m.Get("content"))
	case "compaction_state":
		b.report.expects(kind, e.Result, "summaryText")
		b.summarized(Compaction{}, readParts(e.Get("summaryText"))...)
	default:
		b.report.unknown(kind)
	}
}

// anthropicMessage adds a message whose content has the form of Anthropic's API.
func (b *builder) anthropicMessage(role string, kind thread.Kind, content gjson.Result) {
	if role != "user" && role != "assistant" {
		b.unknownRole(role)
		return
	}
	messages, err := anthropic.DecodeMessage(anthropicWhole(role, content))
	if err != nil {
		b.report.warn(b.line, "a message cannot be read and was left out: %v", err)
	}
	dropForeignBytes(messages)
	b.add(kind, messages...)
}

// anthropicWhole is the message of a content, which may be one block.
func anthropicWhole(role string, content gjson.Result) string {
	raw := content.Raw
	if content.Type == gjson.Null {
		raw = "[]"
	} else if content.IsObject() {
		raw = "[" + raw + "]"
	}
	return `{"role":"` + role + `","content":` + raw + `}`
}
