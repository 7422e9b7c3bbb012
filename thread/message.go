package thread

import (
	"strings"
	"time"
)

// ID names a message. It is either chained (see ChainID), so that the same
// history gives the same ids on every machine, or brought by the caller.
type ID string

// Role says who speaks. A tool message holds exactly one tool result.
type Role string

// The four roles. Provider roles are mapped to them by the codecs: "model" is
// Assistant, "developer" is System, "function" is Tool.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Kind says why a message stands in the log, where its role alone would
// mislead. It is found by importers and is no part of a message's identity.
type Kind uint8

const (
	// Plain is what a person or a model really said.
	Plain Kind = iota
	// Injected is text that a harness put in the user's name: reminders,
	// environment blocks, command output, "continue" prompts. It starts no
	// turn and is never taken for a request.
	Injected
	// Recap is a summary written by an earlier compaction, by us or by the
	// agent itself. It starts no turn and is never summarised as content.
	Recap
)

// Message is the smallest thing a plan can address.
//
// A thread keeps messages of its own: Append copies what it is given, and what a
// thread hands out is the caller's to change.
type Message struct {
	// ID is filled in by Append when it is empty.
	ID    ID
	Role  Role
	Kind  Kind
	Name  string // the participant's name, where a provider carries one
	Parts []Part

	// Turn is set by Append: 0 before the first user message, then one more
	// with each plain user message.
	Turn int
	// Time is when the message was made; zero when the source does not say.
	Time time.Time

	// Frame is the provider message this one was read from, so that what is
	// not touched is sent on byte for byte; nil when it was made here.
	// Index is its position among the messages cut from the frame.
	Frame *Frame
	Index int
}

// Frame is a run of one or more whole elements of a provider's message array.
// Several messages share a frame when the provider packs what we keep apart
// (several tool results in one user message); one message has a frame of
// several elements when the provider keeps apart what we keep together (the
// items of one model response). Two messages belong together when their
// Frame pointers are equal. A frame never changes.
type Frame struct {
	api, raw                     string
	position, elements, messages int
}

// NewFrame makes a frame: the codec that read it, the exact text of its
// elements, the index of the first of them in the array, how many elements the
// text holds, and how many messages were cut from it.
func NewFrame(api, raw string, position, elements, messages int) *Frame {
	return &Frame{api, raw, position, elements, messages}
}

// Equal reports whether two frames hold the same. Messages that belong together
// have one and the same frame.
func (f *Frame) Equal(g *Frame) bool { return f == g || f != nil && g != nil && *f == *g }

// API names the codec that read the frame, such as "anthropic".
func (f *Frame) API() string { return f.api }

// Raw is the exact text of the elements, separators between them included.
func (f *Frame) Raw() string { return f.raw }

// Position is the index of the first element in the array it came from.
func (f *Frame) Position() int { return f.position }

// Elements is how many elements Raw holds.
func (f *Frame) Elements() int { return f.elements }

// Messages is how many messages were cut from the frame.
func (f *Frame) Messages() int { return f.messages }

// Text joins the text parts of the message with newlines. Reasoning, media,
// calls, results and opaque parts are left out.
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

// Result returns the tool result that a tool message holds, and whether there
// is one.
func (m *Message) Result() (ToolResult, bool) {
	for _, p := range m.Parts {
		if r, ok := p.(ToolResult); ok {
			return r, true
		}
	}
	return ToolResult{}, false
}

// StartsTurn reports whether the message opens a turn: a plain user message.
func (m *Message) StartsTurn() bool { return m.Role == User && m.Kind == Plain }
