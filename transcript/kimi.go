package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readKimiCode reads a wire log of Kimi Code: what was added to the context, in order,
// with the answers of the model in pieces. What the user took back stands beside it.
func readKimiCode(j *importJob) ([]Transcript, error) {
	var log course[record]
	b := j.newBuilder(value{name: j.name})
	b.Title, b.Dir = j.place.About(j.path)
	if dir := filepath.Dir(j.path); filepath.Base(dir) == kimiMain { // all are named alike
		_, b.Name = j.place.Names(j.path)
	}
	err := j.lines(func(v gjson.Result, number int) {
		switch kind := v.Get("type").Str; kind {
		case "context.undo":
			j.report.skip(kind)
			if count := int(v.Get("count").Int()); !log.undo(count) {
				j.report.warn(number, "the user went back %d turns here, and there are none", count)
			}
		case "context.clear":
			j.report.skip(kind)
			log.goBack(0)
		case "swarm_mode.exit": // takes its reminder back, if nothing came after it
			if n := len(log.now); n > 0 && log.now[n-1].Get("message.origin.variant").Str == "swarm_mode" {
				log.now = log.now[:n-1]
			}
			j.report.skip(kind)
		case "config.update", "profile.bind", "llm.request": // of the session, whatever is taken back
			kimiRecord(b, v, number)
		default:
			if m := v.Get("message"); kind == "context.append_message" && kimiOpensTurn(m) {
				begun := len(log.now)
				for id := m.Get("id").Str; id != "" && begun > 0 && log.now[begun-1].Get("message.origin.ownerPromptId").Str == id; {
					begun-- // what was added for the prompt goes with it
				}
				log.turns = append(log.turns, begun)
			}
			log.now = append(log.now, record{Result: v, line: number})
		}
	})
	if err != nil {
		return nil, err
	}
	add := func(to *builder, records []record) *builder {
		for _, r := range records {
			kimiRecord(to, r.Result, r.line)
		}
		to.placeFiles(j.kimiBlob)
		return to
	}
	apart := func(records []record) *builder { return add(j.newBuilder(value{}), records) }
	return add(b, log.now).transcripts(built(log.left, apart)...)
}

// kimiBlob is a file that lies beside the log under its hash, as the name says: "blobref:image/png;HASH".
func (j *importJob) kimiBlob(name string) string {
	mime, hash, _ := strings.Cut(strings.TrimPrefix(name, "blobref:"), ";")
	if sum, err := hex.DecodeString(hash); err != nil || len(sum) != sha256.Size || j.path == "" {
		return ""
	}
	data := regularFile(filepath.Join(filepath.Dir(j.path), "blobs", hash), maxPlaced)
	if len(data) == 0 {
		return ""
	}
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

func kimiRecord(b *builder, v gjson.Result, number int) {
	b.at(number, millisTime(v.Get("time").Int()))
	switch kind := v.Get("type").Str; kind {
	case "config.update", "profile.bind":
		b.report.skip(kind)
		if p := v.Get("systemPrompt").Str; p != "" {
			b.System = []prompt.System{{Text: p, Role: "system"}}
		}
	case "llm.request":
		b.report.skip(kind)
		b.Model = cmp.Or(v.Get("model").Str, b.Model)
	case "context.append_message":
		b.flush()
		kimiMessage(b, v.Get("message"))
	case "context.append_loop_event":
		kimiEvent(b, v.Get("event"))
	case "context.apply_compaction":
		b.flush()
		summary := firstParts(v, "contextSummary", "summary.content", "summary") // before version 1.5 it is a message
		b.summarized(Compaction{TokensBefore: int(v.Get("tokensBefore").Int()), TokensAfter: int(v.Get("tokensAfter").Int())}, summary...)
	default:
		b.otherRecord(kind)
	}
}

// kimiOpensTurn reports whether the user began a turn with a message, which an undo goes back to.
func kimiOpensTurn(m gjson.Result) bool {
	origin := m.Get("origin")
	switch origin.Get("kind").Str {
	case "", "user":
		return m.Get("role").Str == "user"
	}
	return origin.Get("trigger").Str == "user-slash"
}

// kimiMessage adds a message that was added as a whole: the user's, the harness's, and all of a session that
// comes from another program.
func kimiMessage(b *builder, m gjson.Result) {
	how := thread.Injected
	switch m.Get("origin.kind").Str {
	case "", "user":
		how = thread.Plain
	case "shell_command": // the user ran it
		how = thread.Attached
	case "compaction_summary":
		how = thread.Recap
	}
	b.report.expects("message", m, "content")
	b.report.members("kimi-code/message", m)
	parts := readParts(m.Get("content"))
	switch role := thread.Role(m.Get("role").Str); role {
	case thread.User, thread.System:
		b.say(role, how, parts...)
	case thread.Assistant:
		b.step.kind = how
		b.addPart(parts...)
		for c := range rawjson.Items(m.Get("toolCalls")) {
			call := c
			if f := c.Get("function"); f.Exists() { // before version 1.1
				call = f
			}
			b.addCall(c.Get("id").Str, call.Get("name").Str, argumentsJSON(call.Get("arguments")))
		}
		b.flush()
	case thread.Tool:
		parts = append(parts, textParts(m.Get("note").Str)...)
		b.answer(thread.ToolResult{CallID: b.openCallID(m.Get("toolCallId").Str), Outcome: outcomeOf(m.Get("isError").Bool()), Content: parts})
	default:
		b.unknownRole(string(role))
	}
}

func kimiEvent(b *builder, e gjson.Result) {
	b.report.members("kimi-code/"+e.Get("type").Str, e)
	switch kind := e.Get("type").Str; kind {
	case "step.begin", "step.end":
		b.report.skip(kind)
		if kind == "step.begin" {
			b.flush()
		}
	case "content.part":
		b.addPart(readParts(e.Get("part"))...)
	case "tool.call":
		b.addCall(e.Get("toolCallId").Str, e.Get("name").Str, argumentsJSON(e.Get("args")))
	case "tool.result":
		b.flush()
		r := thread.ToolResult{CallID: b.openCallID(e.Get("toolCallId").Str), Outcome: outcomeOf(e.Get("result.isError").Bool())}
		switch out := e.Get("result.output"); {
		case out.IsArray():
			r.Content = readParts(out)
		case !out.Exists():
			b.report.expects(kind, e, "result")
			r.Content = readParts(e.Get("result"))
		default:
			r.Structured, r.Content = structuredResult(out)
		}
		r.Content = append(r.Content, textParts(e.Get("result.note").Str)...)
		b.answer(r)
	default:
		b.report.unknown("event/" + kind)
	}
}
