package recall

import (
	"cmp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Entry is one message that can be found.
type Entry struct {
	ThreadID  string    `json:"thread_id"`
	MessageID thread.ID `json:"message_id"`
	// Position is the position of the message in its thread, counting from 0.
	Position int         `json:"position"`
	Turn     int         `json:"turn"`
	Role     thread.Role `json:"role"`
	// Tool is the tool whose result the message is, or empty.
	Tool string `json:"tool,omitempty"`
	// Call is the call of a result in one line: the tool and its arguments, at most about
	// 240 characters. It is empty for other messages.
	Call string `json:"call,omitempty"`
	// Action and Reason are those of the plan's record; Include and empty for All.
	Action plan.Action `json:"action"`
	Reason string      `json:"reason,omitempty"`
	// Keywords are up to 12 words that distinguish the message from the others, best
	// first.
	Keywords []string `json:"keywords,omitempty"`
	// Summary is one line of at most about 160 characters.
	Summary string `json:"summary"`
	// Time is the time of the message, or of the plan if the log does not have it.
	Time time.Time `json:"time,omitzero"`
	// ArtifactID is the artifact of an externalized message, or of a result that a summary or a
	// drop kept.
	ArtifactID string `json:"artifact_id,omitempty"`
	// Text is the FullText of the message.
	Text string `json:"text"`
}

// Removed lists the messages of t that p clears, summarizes, externalizes or drops, in
// thread order. These are the hidden ones of render.Manifest. It returns nil for a plan of
// another thread.
func Removed(t *thread.Thread, p *plan.Plan) []Entry {
	if p.Empty() || p.ThreadID != t.ID() {
		return nil
	}
	actions := p.Actions()
	artifacts := map[thread.ID]string{}
	for _, x := range p.Externalized() {
		for _, id := range x.Messages {
			artifacts[id] = x.ArtifactID
		}
	}
	return newEntries(t, len(actions), func(m *thread.Message, e *Entry) bool {
		ref := actions[m.ID]
		if ref.Action == plan.Include {
			return false
		}
		e.Action, e.Reason, e.Text, e.ArtifactID = ref.Action, p.Record(ref).Made().Reason, FullText(m), artifacts[m.ID]
		if e.Time.IsZero() {
			e.Time = p.CreatedAt
		}
		return true
	})
}

// All lists every message of t that has any text, in thread order, to search a whole
// conversation.
func All(t *thread.Thread) []Entry {
	return newEntries(t, t.Len(), func(m *thread.Message, e *Entry) bool {
		e.Text = FullText(m)
		return e.Text != ""
	})
}

// newEntries makes entries of the messages that admit accepts; admit sets Text and the
// fields of the plan.
func newEntries(t *thread.Thread, about int, admit func(*thread.Message, *Entry) bool) []Entry {
	pairs := thread.Pair(t)
	messages := t.Messages()
	entries := make([]Entry, 0, about)
	for i := range messages {
		m := &messages[i]
		e := Entry{ThreadID: t.ID(), MessageID: m.ID, Position: i, Turn: m.Turn, Role: m.Role, Time: m.Time}
		if !admit(m, &e) {
			continue
		}
		var call thread.ToolCall
		if r, ok := m.Result(); ok {
			e.Tool = r.Tool
			call, _ = pairs.Answered(i)
			e.Call = clip.Line(r.Tool+" "+argumentValues(call.Arguments, maxCall, maxValue), maxCall)
		}
		e.Summary = summaryLine(m, call)
		entries = append(entries, e)
	}
	addKeywords(entries)
	return entries
}

const (
	// maxSummary bounds Entry.Summary, maxArguments the arguments in it, in
	// characters.
	maxSummary, maxArguments = 160, 80
	// maxCall bounds Entry.Call, maxValue each value in it, in characters.
	maxCall, maxValue = 240, 140
)

// summaryLine describes a message in one line.
func summaryLine(m *thread.Message, call thread.ToolCall) string {
	head, body := "", m.Text()
	if r, ok := m.Result(); ok {
		head, body = strings.TrimSpace(r.Tool+" "+argumentsBrief(call.Arguments)), r.Text()
		if r.Outcome == thread.Failure {
			head += " failed"
		}
	} else if calls := m.Calls(); strings.TrimSpace(body) == "" && len(calls) > 0 {
		var names []string
		for _, c := range calls {
			names = append(names, strings.TrimSpace(c.Name+" "+argumentsBrief(c.Arguments)))
		}
		return clip.Line("calls "+strings.Join(names, ", "), maxSummary)
	}
	line := cmp.Or(firstLine(body), firstLine(FullText(m)))
	if head != "" && line != "" {
		head += ": "
	}
	return clip.Line(head+line, maxSummary)
}

// argumentsBrief returns the first values of a call's arguments, without their names.
func argumentsBrief(arguments string) string {
	return clip.Line(argumentValues(arguments, 3, maxArguments), maxArguments)
}

// argumentValues returns the first lines of the first values of a call's arguments.
func argumentValues(arguments string, most, each int) string {
	if !rawjson.Valid(arguments) {
		return arguments
	}
	var values []string
	gjson.Parse(arguments).ForEach(func(_, v gjson.Result) bool {
		if text := firstLine(v.String()); text != "" {
			values = append(values, clip.Line(text, each))
		}
		return len(values) < most
	})
	return strings.Join(values, " ")
}

// firstLine returns the first line of s that is not blank.
func firstLine(s string) string {
	for line := range strings.SplitSeq(s, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
