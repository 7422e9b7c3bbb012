package transcript

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// openHandsACP is a call of another agent, which OpenHands runs over the Agent Client
// Protocol. Several events with one id report it, each with what is known by then.
type openHandsACP struct {
	line       int
	start, end time.Time // of the first and the last event
	gjson.Result
}

// acp takes in an event of such a call. Calls of a sub-agent are no part of the
// conversation.
func (s *openHandsLog) acp(e gjson.Result) {
	if e.Get("parent_tool_call_id").Str != "" {
		s.report.skip("ACPToolCallEvent of a sub-agent")
		return
	}
	id := e.Get("tool_call_id").Str
	if n := slices.IndexFunc(s.remote, func(c openHandsACP) bool { return c.Get("tool_call_id").Str == id }); n >= 0 {
		s.remote[n].Result, s.remote[n].end = e, s.time
		return
	}
	if len(s.remote) == 0 {
		s.flush()
	}
	s.remote = append(s.remote, openHandsACP{s.line, s.time, s.time, e})
}

// flushACP adds the calls since the last message, each with its result if there is one.
func (s *openHandsLog) flushACP() {
	line, now := s.line, s.time
	for _, c := range s.remote {
		name := cmp.Or(c.Get("tool_kind").Str, "tool")
		input := rawjson.AsObject(c.Get("raw_input").Raw)
		if title := c.Get("title"); title.Str != "" && (input == "{}" || input == `{"input":null}`) {
			input = new(rawjson.Object).Raw("title", title.Raw).String()
		}
		call := s.newCall(c.Get("tool_call_id").Str, name, input)
		s.at(c.line, c.start)
		s.say(thread.Assistant, thread.Plain, call)
		r := thread.ToolResult{CallID: call.ID, Completed: c.end, Content: acpContent(c.Get("content"))}
		if output := c.Get("raw_output"); len(r.Content) == 0 {
			r.Structured, r.Content = structuredResult(output)
		}
		status := c.Get("status").Str
		if c.Get("is_error").Bool() || status == "failed" {
			r.Outcome = thread.Failure
		} else if len(r.Content) == 0 && status != "completed" {
			continue // it was still running
		}
		s.answer(r)
	}
	s.remote = nil
	s.at(line, now)
}

// acpContent are the contents of a call: texts and media, alone or wrapped, and
// changes of files.
func acpContent(content gjson.Result) []thread.Part {
	var said []thread.Part
	for block := range rawjson.Items(content) {
		switch inner := block.Get("content"); block.Get("type").Str {
		case "content":
			said = append(said, readParts(inner)...)
		case "diff":
			lines := []string{block.Get("path").Str}
			for _, side := range [][3]string{{"-", "old_text", "oldText"}, {"+", "new_text", "newText"}} {
				if old := block.Get(side[1]).Str + block.Get(side[2]).Str; old != "" {
					lines = append(lines, side[0]+strings.ReplaceAll(strings.TrimSuffix(old, "\n"), "\n", "\n"+side[0]))
				}
			}
			said = append(said, textParts(strings.Join(lines, "\n"))...)
		default:
			said = append(said, readParts(block)...)
		}
	}
	return said
}
