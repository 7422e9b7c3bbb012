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

// openHandsACP is a call that another agent made, whom OpenHands talks to over the
// Agent Client Protocol. It is told of in several events of one id, each with what is
// known by then.
type openHandsACP struct {
	line int
	at   time.Time // of the first event
	end  time.Time // of the last
	gjson.Result
}

// acp takes in an event of such a call. Those that a sub-agent made are no part of the
// conversation.
func (s *openHandsLog) acp(line int, at time.Time, e gjson.Result) {
	if e.Get("parent_tool_call_id").Str != "" {
		s.report.skip("ACPToolCallEvent of a sub-agent")
		return
	}
	id := e.Get("tool_call_id").Str
	if n := slices.IndexFunc(s.remote, func(c openHandsACP) bool { return c.Get("tool_call_id").Str == id }); n >= 0 {
		s.remote[n].Result, s.remote[n].end = e, at
		return
	}
	if len(s.remote) == 0 {
		s.flush()
	}
	s.remote = append(s.remote, openHandsACP{line, at, at, e})
}

// flushACP adds the calls that were told of since the last message, each with its
// result, where there is one yet.
func (s *openHandsLog) flushACP() {
	for _, c := range s.remote {
		name := cmp.Or(c.Get("tool_kind").Str, "tool")
		input := "{}"
		switch raw := c.Get("raw_input"); {
		case raw.IsObject():
			input = raw.Raw
		case raw.Exists() && raw.Type != gjson.Null:
			input = `{"input":` + raw.Raw + `}`
		case c.Get("title").Str != "":
			input = `{"title":` + c.Get("title").Raw + `}`
		}
		call := s.newCall(c.Get("tool_call_id").Str, name, input)
		s.add(c.line, c.at, thread.Plain, thread.Message{Role: thread.Assistant, Parts: []thread.Part{call}})
		r := thread.ToolResult{CallID: call.ID, Tool: name, Outcome: thread.Success, Content: acpContent(c.Get("content"))}
		if output := c.Get("raw_output"); len(r.Content) == 0 {
			r.Structured, r.Content = structuredResult(output)
		}
		status := c.Get("status").Str
		if c.Get("is_error").Bool() || status == "failed" {
			r.Outcome = thread.Failure
		} else if len(r.Content) == 0 && status != "completed" {
			continue // it was still running
		}
		s.add(c.line, c.end, thread.Plain, toolMessage(r))
	}
	s.remote = nil
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
