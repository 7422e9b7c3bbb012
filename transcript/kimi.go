package transcript

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// kimiSession is a wire log of Kimi Code while it is read: what the context
// gained, in order, with the answers of the model in pieces.
type kimiSession struct {
	*builder
	answer thread.Message // the answer being put together
	line   int
	time   time.Time
}

func readKimiCode(j *job) ([]Transcript, error) {
	s := &kimiSession{builder: newBuilder(j.name, j.report)}
	if err := j.lines(s.read); err != nil {
		return nil, err
	}
	s.flush()
	t, err := s.done()
	if err != nil || t.Thread.Len() == 0 {
		return nil, err
	}
	return []Transcript{t}, nil
}

func (s *kimiSession) read(v gjson.Result, number int) {
	at := millis(v.Get("time").Int())
	switch kind := v.Get("type").Str; kind {
	case "config.update":
		s.report.skip(kind)
		if p := v.Get("systemPrompt").Str; p != "" {
			s.system = []prompt.System{{Text: p, Role: "system"}}
		}
	case "llm.request":
		s.report.skip(kind)
		if model := v.Get("model").Str; model != "" {
			s.model = model
		}
	case "context.append_message":
		s.flush()
		m, origin := v.Get("message"), v.Get("message.origin.kind").Str
		how := thread.Plain
		if origin != "" && origin != "user" {
			how = thread.Injected
		}
		role := thread.Role(m.Get("role").Str)
		if role != thread.User && role != thread.Assistant && role != thread.System {
			s.report.unknown(kind + "/" + string(role))
			return
		}
		s.add(number, at, how, thread.Message{Role: role, Parts: kimiParts(m.Get("content"))})
	case "context.append_loop_event":
		s.event(v.Get("event"), number, at)
	case "context.apply_compaction":
		s.flush()
		summary := v.Get("contextSummary").Str
		if summary == "" {
			summary = v.Get("summary").Str
		}
		s.compacted(Compaction{TokensBefore: int(v.Get("tokensBefore").Int())}, summary != "")
		s.add(number, at, thread.Recap, user(summary))
	case "metadata", "tools.set_active_tools", "turn.prompt", "llm.tools_snapshot", "usage.record",
		"permission.record_approval_result", "plan_mode.enter", "plan_mode.exit",
		"full_compaction.begin", "full_compaction.complete":
		s.report.skip(kind)
	default:
		s.report.unknown(kind)
	}
}

func (s *kimiSession) event(e gjson.Result, number int, at time.Time) {
	switch kind := e.Get("type").Str; kind {
	case "step.begin", "step.end":
		s.report.skip(kind)
		if kind == "step.begin" {
			s.flush()
		}
	case "content.part":
		s.gain(number, at, kimiParts(e.Get("part"))...)
	case "tool.call":
		s.gain(number, at, s.call(e.Get("toolCallId").Str, e.Get("name").Str, arguments(e.Get("args"))))
	case "tool.result":
		s.flush()
		result := e.Get("result")
		r := thread.ToolResult{CallID: s.answers(e.Get("toolCallId").Str), Outcome: thread.Success}
		if result.Get("isError").Bool() {
			r.Outcome = thread.Failure
		}
		if out := result.Get("output"); out.IsArray() {
			r.Content = kimiParts(out)
		} else {
			r.Structured, r.Content = structured(out)
		}
		s.add(number, at, thread.Plain, answer(r))
	default:
		s.report.unknown("event/" + kind)
	}
}

// gain adds parts to the answer.
func (s *kimiSession) gain(number int, at time.Time, parts ...thread.Part) {
	if len(s.answer.Parts) == 0 {
		s.line, s.time = number, at
	}
	s.answer.Role = thread.Assistant
	s.answer.Parts = append(s.answer.Parts, parts...)
}

func (s *kimiSession) flush() {
	if len(s.answer.Parts) > 0 {
		s.add(s.line, s.time, thread.Plain, s.answer)
	}
	s.answer = thread.Message{}
}

// kimiParts reads a part or a list of parts.
func kimiParts(v gjson.Result) []thread.Part {
	if v.Type == gjson.String {
		return text(v.Str)
	}
	if v.IsArray() {
		var parts []thread.Part
		each(v, func(_, p gjson.Result) bool {
			parts = append(parts, kimiParts(p)...)
			return true
		})
		return parts
	}
	switch kind := v.Get("type").Str; {
	case kind == "text":
		return text(v.Get("text").Str)
	case kind == "think":
		return []thread.Part{thread.Reasoning{Text: v.Get("think").Str, Signature: v.Get("encrypted").Str}}
	case strings.HasSuffix(kind, "_url"):
		mime, _, _ := strings.Cut(kind, "_")
		return []thread.Part{media(mime, v.Get(kind+".url").Str)}
	case v.IsObject():
		return []thread.Part{opaque(v)}
	}
	return nil
}
