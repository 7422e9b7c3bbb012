package recall

import (
	"cmp"
	"slices"
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
	// Author is who wrote the message, where it is not whom the role tells: the agent's program in the
	// user's name, for example, or a compaction. It is empty for others.
	Author thread.Author `json:"author,omitempty"`
	// Tool is the tool whose result the message is, or empty.
	Tool string `json:"tool,omitempty"`
	// Call is the call of a result in one line: the tool and its arguments, at most about
	// 240 characters. It is empty for other messages.
	Call string `json:"call,omitempty"`
	// Action and Reason are those of the plan's record; Include and empty for All.
	Action plan.Action `json:"action"`
	Reason string      `json:"reason,omitempty"`
	// Keywords are up to 12 words that distinguish the message from the others, best
	// first; AddKeywords sets them.
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

// Removed lists the messages of t that plans clear, summarize, externalize or drop, in thread
// order: of one plan, the hidden ones of render.Manifest. Where several plans remove a message,
// the first of them is told. Plans of another thread remove nothing; the list is nil without any
// message.
func Removed(t *thread.Thread, plans ...*plan.Plan) []Entry {
	type removal struct {
		by  *plan.Plan
		ref plan.Ref
	}
	removed, artifacts := map[thread.ID]removal{}, map[thread.ID]string{}
	for _, p := range slices.Backward(plans) {
		if p.Empty() || p.ThreadID != t.ID() {
			continue
		}
		for id, ref := range p.Actions() {
			removed[id] = removal{p, ref}
		}
		for _, x := range p.Externalized() {
			for _, id := range x.Messages {
				artifacts[id] = cmp.Or(x.ArtifactID, artifacts[id])
			}
		}
	}
	if len(removed) == 0 {
		return nil
	}
	return newEntries(t, len(removed), func(m *thread.Message, e *Entry) bool {
		r, is := removed[m.ID]
		if !is {
			return false
		}
		e.Action, e.Reason, e.Text, e.ArtifactID = r.ref.Action, r.by.Record(r.ref).Made().Reason, FullText(m), artifacts[m.ID]
		if e.Time.IsZero() {
			e.Time = r.by.CreatedAt
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
		if m.IsAdded() || m.Kind == thread.Recap {
			e.Author = m.Author()
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
	return entries
}

const (
	// maxSummary bounds Entry.Summary, maxArguments the arguments in it, in
	// characters.
	maxSummary, maxArguments = 160, 80
	// maxCall bounds Entry.Call, maxValue each value in it, in characters.
	maxCall, maxValue = 240, 140
)

// callsSummary begins the summary of a message that only calls tools.
const callsSummary = "calls "

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
		return clip.Line(callsSummary+strings.Join(names, ", "), maxSummary)
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
