package transcript

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// builder collects one conversation.
type builder struct {
	Transcript
	report    *Report
	keepEmpty bool // empty messages are kept too

	messages    []thread.Message
	calls       map[string]string // tool by call id
	answered    map[string]bool   // by call id
	asked       map[string]time.Time
	recaps      []bool // per compaction: a recap follows
	local       int    // calls that got an id of ours
	open        []string
	actedInText bool // the last message of the assistant was an action in text
	step        step
}

// step is an answer that is put together: what the model said, and the results of
// its calls, which come behind it.
type step struct {
	line    int
	at      time.Time
	kind    thread.Kind
	parts   []thread.Part
	results []thread.Message
}

// addPart adds to the answer that is put together; the first piece says where and when
// it began.
func (b *builder) addPart(line int, at time.Time, parts ...thread.Part) {
	b.beginStep(line, at)
	b.step.parts = append(b.step.parts, parts...)
}

// addResult adds a result of the answer that is put together.
func (b *builder) addResult(line int, at time.Time, result thread.Message) {
	b.beginStep(line, at)
	b.step.results = append(b.step.results, result)
}

func (b *builder) beginStep(line int, at time.Time) {
	if len(b.step.parts) == 0 && len(b.step.results) == 0 {
		b.step.line, b.step.at = line, at
	}
}

// flush adds the answer that was put together, and its results.
func (b *builder) flush() {
	s := b.step
	b.step = step{}
	if len(s.parts) > 0 {
		b.add(s.line, s.at, s.kind, thread.Message{Role: thread.Assistant, Parts: s.parts})
	}
	b.add(s.line, s.at, thread.Plain, s.results...)
}

func newBuilder(name string, report *Report) *builder {
	return &builder{
		Transcript: Transcript{Name: name}, report: report,
		calls: map[string]string{}, answered: map[string]bool{}, asked: map[string]time.Time{},
	}
}

// add appends messages that were read from one place. Messages without any part
// are counted and left out. A kind other than Plain is taken as it is; for
// plain user messages the text decides.
func (b *builder) add(line int, at time.Time, kind thread.Kind, messages ...thread.Message) {
	if kind == thread.Plain {
		var before *thread.Message
		if n := len(b.messages); n > 0 {
			before = &b.messages[n-1]
		}
		messages = injected.MarkKinds(messages, before)
	}
	for _, m := range messages {
		if len(m.Parts) == 0 && !b.keepEmpty {
			b.report.skip("empty " + string(m.Role) + " message")
			continue
		}
		if m.Time.IsZero() {
			m.Time = at
		}
		switch m.Role {
		case thread.User, thread.Assistant:
			if kind != thread.Plain {
				m.Kind = kind
			}
			for _, c := range m.Calls() {
				if _, twice := b.calls[c.ID]; twice && !b.answered[c.ID] {
					b.report.warn(line, "the call %s stands in the file twice", c.ID)
				}
				b.calls[c.ID], b.asked[c.ID] = c.Name, m.Time
				delete(b.answered, c.ID)
			}
		case thread.Tool:
			m.Parts = slices.Clone(m.Parts)
			b.completeResult(line, &m)
		}
		b.messages = append(b.messages, m)
	}
}

// completeResult completes a tool message from the call that it answers.
func (b *builder) completeResult(line int, m *thread.Message) {
	for i, p := range m.Parts {
		r, ok := p.(thread.ToolResult)
		if !ok {
			continue
		}
		tool, known := b.calls[r.CallID]
		switch {
		case !known:
			b.report.warn(line, "the result %s answers no call in the file", r.CallID)
		case b.answered[r.CallID]:
			b.report.warn(line, "the call %s has a second result", r.CallID)
		}
		b.answered[r.CallID] = true
		r.Tool = cmp.Or(r.Tool, tool)
		r.Outcome = cmp.Or(r.Outcome, thread.Success)
		r.Started, r.Completed = b.asked[r.CallID], m.Time
		m.Parts[i] = r
	}
}

// addCompaction notes that the agent compacted before the next message. Where
// recap is true, that message is the summary.
func (b *builder) addCompaction(c Compaction, recap bool) {
	c.At = len(b.messages)
	b.Compactions = append(b.Compactions, c)
	b.recaps = append(b.recaps, recap)
}

// newCall makes the part of a tool call, with an id of ours where the file has
// none.
func (b *builder) newCall(id, name, arguments string) thread.ToolCall {
	if id == "" {
		id = thread.LocalID(b.local)
		b.local++
	}
	b.open = append(b.open, id)
	return thread.ToolCall{ID: id, Name: name, Arguments: arguments}
}

// openCallID gives the id of the call that a result without an id answers: the
// oldest one that is still open. A result that nothing asked for gets an id of
// its own.
func (b *builder) openCallID(id string) string {
	if id != "" {
		return id
	}
	for _, open := range b.open {
		if !b.answered[open] {
			return open
		}
	}
	b.local++
	return thread.LocalID(b.local - 1)
}

// build makes the transcript.
func (b *builder) build() (Transcript, error) {
	t, err := thread.New(b.Name).Append(b.messages...)
	if err != nil {
		return Transcript{}, fmt.Errorf("transcript: %w", err)
	}
	for i, recap := range b.recaps {
		if c := &b.Compactions[i]; recap && c.At < t.Len() {
			c.Summary = uncopied.At(t, c.At).ID
		}
	}
	b.Thread = t
	return b.Transcript, nil
}

// transcripts are the transcript, or none where it holds nothing.
func (b *builder) transcripts() ([]Transcript, error) {
	b.flush()
	t, err := b.build()
	if err != nil || t.Thread.Len() == 0 {
		return nil, err
	}
	return []Transcript{t}, nil
}

// parseTime reads a time stamp; the zero time stands for what cannot be read.
func parseTime(stamp string) time.Time {
	t, _ := time.Parse(time.RFC3339, stamp)
	return t.UTC()
}

// millisTime turns Unix milliseconds into a time; 0 is the zero time.
func millisTime(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}
