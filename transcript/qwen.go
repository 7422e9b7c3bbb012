package transcript

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// qwenAdded are the records in the user's name that no person wrote.
var qwenAdded = scan.WordSet("notification cron goal_runtime")

// readQwenCode reads a session of Qwen Code: a tree as Claude Code has it, with messages in the form of
// Gemini's API. A rewind goes on from an earlier record.
func readQwenCode(j *importJob) ([]Transcript, error) {
	name, title, dir := j.name, "", ""
	side := subagentSides{job: j}
	found, err := j.readTree("uuid", "parentUuid", func(r record) bool {
		name, dir = cmp.Or(r.Get("sessionId").Str, name), cmp.Or(dir, r.Get("cwd").Str)
		title = cmp.Or(r.Get("systemPayload.customTitle").Str, title)
		apart := r.Get("isSidechain").Bool()
		if apart {
			qwenRecord(side.of(r.Get("agentId").String()), r)
		}
		return apart
	}, func(records []record) *builder {
		b := j.newBuilder(value{name: name})
		b.Title, b.Dir = title, dir
		for _, r := range records {
			qwenRecord(b, r)
		}
		return b
	})
	if err != nil {
		return nil, err
	}
	return side.addTo(found, name)
}

func qwenRecord(b *builder, r record) {
	b.at(r.line, parseTime(r.Get("timestamp").Str))
	subtype, parts := r.Get("subtype").Str, r.Get("message.parts")
	b.report.members("qwen-code/record", r.Result)
	b.report.expects("record", r.Result, "message.parts", "systemPayload", "subtype")
	switch kind := r.Get("type").Str; {
	case kind == "system" && subtype == "chat_compression":
		qwenCompression(b, r.Get("systemPayload"))
	case kind == "system" && (subtype == "" || known["qwen-code"][subtype]) && !parts.Exists():
		b.report.skip("system/" + subtype)
	case kind == "assistant":
		geminiAnswer(b, parts, r.Result)
	case kind == "tool_result":
		geminiUser(b, parts, thread.Plain)
	case kind == "user" && (qwenAdded[subtype] || qwenAdded[r.Get("provenance").Str]), kind == "system" && parts.Exists():
		geminiUser(b, parts, thread.Injected)
	case kind == "user":
		geminiUser(b, parts, thread.Plain)
	default:
		b.report.unknown(kind + "/" + subtype)
	}
}

// qwenCompression reads what stands in place of the history: a summary in the user's name comes first,
// which the model took note of.
func qwenCompression(b *builder, payload gjson.Result) {
	history, summary := payload.Get("compressedHistory"), ""
	if history.Get("0.role").Str == "user" && strings.HasPrefix(geminiText(history.Get("1.parts")), "Got it.") {
		summary = geminiText(history.Get("0.parts"))
	}
	info := payload.Get("info")
	b.addCompaction(Compaction{TokensBefore: int(info.Get("originalTokenCount").Int()), TokensAfter: int(info.Get("newTokenCount").Int())}, summary != "")
	if summary == "" && history.Get("#").Int() == 0 { // else results were shortened, without a model
		b.report.warn(b.line, "the summary of this compaction cannot be read; the history before it was kept")
	}
	b.sayAny(thread.Recap, textParts(summary))
}
