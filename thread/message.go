package thread

import (
	"slices"
	"strings"
	"time"
)

// ID identifies a message in its thread. It is either computed (see ChainID), so that the
// same history has the same ids everywhere, or given by the caller.
type ID string

// Role is the role of a message. A tool message has exactly one tool result.
type Role string

// The roles. Codecs map those of providers to them: "model" is Assistant, "developer" is
// System, "function" is Tool.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Kind says where the text of a message comes from, if its role alone is misleading. It is
// set by importers, and is not part of a message's identity.
type Kind uint8

const (
	// Plain is what a person or a model said.
	Plain Kind = iota
	// Injected is text that a harness wrote in the user's name: reminders, environment
	// blocks, command output, "continue" prompts. It starts no turn and is never taken for
	// a request.
	Injected
	// Recap is the summary of an earlier compaction, ours or the agent's own. It starts no
	// turn and is never summarized as content.
	Recap
	// Attached is the person's material: files, selections and output that a program put there as
	// the person wished. It starts no turn and holds no request.
	Attached
	// Relayed is what another agent wrote. It starts no turn.
	Relayed
)

// Message is the unit that plans address.
//
// A thread has its own copies of messages: callers may change messages that they append or
// get.
type Message struct {
	// ID is filled in by Append when it is empty.
	ID   ID
	Role Role
	Kind Kind
	// Final says that nobody will change what the message holds any more, so that Append takes that as it
	// is, without a copy. Append and Own make it false.
	Final bool
	Name  string // the participant's name, where a provider carries one
	Parts []Part

	// Turn is set by Append: 0 before the first plain user message, which starts turn 1.
	Turn int
	// Time is when the message was made; zero if the source does not say.
	Time time.Time

	// Frame is the provider message that this one was read from, so that unchanged messages
	// are sent on byte for byte; nil if it was made here. Index is its position among the
	// messages of the frame.
	Frame *Frame
	Index int
}

// NewMessage returns a message that is one text, without an id.
func NewMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{Text{Text: text}}}
}

// NewResult returns the tool message that answers the call with a text, without an id.
func NewResult(call ToolCall, outcome Outcome, text string) Message {
	return Message{Role: Tool, Parts: []Part{ToolResult{CallID: call.ID, Tool: call.Name, Outcome: outcome, Content: []Part{Text{Text: text}}}}}
}

// Frame is a run of one or more elements of a provider's message array. Several messages
// share a frame if the provider packs together what we keep apart (several tool results in
// one user message). A frame has several elements if the provider keeps apart what we keep
// together (the items of one model response). Messages of one frame have equal Frame
// pointers. A frame never changes.
type Frame struct {
	api, raw                         string
	text                             string // stands in raw at the byte at, as quote writes it; "" for none
	quote                            func(string) string
	position, elements, messages, at int32
}

// NewFrame returns a frame of the given codec, exact text of its elements, index of the first
// element in the array, number of elements, and number of messages.
func NewFrame(api, raw string, position, elements, messages int) *Frame {
	return &Frame{api: api, raw: raw, position: int32(position), elements: int32(elements), messages: int32(messages)}
}

// With returns a frame like f whose elements are rest with text at the byte at, as quote writes it: what messages
// hold is not held twice. at is above 0; quote always returns the same, and may be called by several goroutines.
func (f *Frame) With(rest string, at int, text string, quote func(string) string) *Frame {
	return &Frame{f.api, rest, text, quote, f.position, f.elements, f.messages, int32(at)}
}

// Cut returns what With was given; 0 and "" for at and text, and all of Raw, if nothing was.
func (f *Frame) Cut() (rest string, at int, text string) { return f.raw, int(f.at), f.text }

// Equal reports whether two frames have the same content. Messages belong together only if
// their frames are identical.
func (f *Frame) Equal(g *Frame) bool {
	return f == g || f != nil && g != nil && f.api == g.api && f.position == g.position && f.elements == g.elements && f.messages == g.messages && f.Raw() == g.Raw()
}

// API names the codec that read the frame, such as "anthropic".
func (f *Frame) API() string { return f.api }

// Raw is the exact text of the elements, including the separators between them.
func (f *Frame) Raw() string {
	if f.at == 0 {
		return f.raw
	}
	return f.raw[:f.at] + f.quote(f.text) + f.raw[f.at:]
}

// HasRaw reports whether Raw is not empty.
func (f *Frame) HasRaw() bool { return f.raw != "" }

// Position is the index of the first element in the array it came from.
func (f *Frame) Position() int { return int(f.position) }

// Elements is the number of elements in Raw.
func (f *Frame) Elements() int { return int(f.elements) }

// Messages is the number of messages of the frame.
func (f *Frame) Messages() int { return int(f.messages) }

// Text joins the Text parts of the message with newlines. It ignores all other parts.
func (m *Message) Text() string {
	var texts []string
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok && t.Text != "" {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Calls returns the tool calls of the message, in order.
func (m *Message) Calls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if c, ok := p.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// Result returns the tool result of a tool message, and whether there is one.
func (m *Message) Result() (ToolResult, bool) {
	for _, p := range m.Parts {
		if r, ok := p.(ToolResult); ok {
			return r, true
		}
	}
	return ToolResult{}, false
}

// IsInstruction reports whether the message holds for all that follows: an instruction of the system
// or the developer, or a part that sets or loads tools. It stands wherever it was given, until it is
// given anew. A summary of another tool may have the system's role too, and is none.
func (m *Message) IsInstruction() bool {
	return m.Kind == Plain && (m.Role == System || slices.ContainsFunc(m.Parts, instructs))
}

func instructs(p Part) bool {
	if r, ok := p.(ToolResult); ok {
		return slices.ContainsFunc(r.Content, instructs)
	}
	o, ok := p.(Opaque)
	return ok && o.Instruction
}

// StartsTurn reports whether the message opens a turn: a plain user message.
func (m *Message) StartsTurn() bool { return m.Author() == ByPerson }
