package thread

import "strings"

// Author is who wrote a text. It is settled where the text is read, from the structure of the file or
// the request, and is no part of a message's identity.
type Author string

// The authors.
const (
	ByPerson     Author = "person"
	ByAttachment Author = "attachment" // what the person attached, selected or ran: material, and never a rule
	ByModel      Author = "model"
	ByAgent      Author = "agent" // another agent: a report, or a message
	ByDeveloper  Author = "developer"
	ByTool       Author = "tool"       // a tool of the client
	ByProvider   Author = "provider"   // a tool that ran at the provider, or a notice of it
	ByHarness    Author = "harness"    // the agent's program, in the user's or the model's name
	ByCompaction Author = "compaction" // a summary of an earlier compaction, ours or the agent's own
)

// ofKind are the authors of messages whose role does not tell.
var ofKind = map[Kind]Author{Injected: ByHarness, Attached: ByAttachment, Relayed: ByAgent, Recap: ByCompaction}

// Author is who wrote messages of the kind; empty for Plain, where the role tells.
func (k Kind) Author() Author { return ofKind[k] }

// Author returns who wrote a message. An unknown role is the tool's: nothing of it is trusted.
func (m *Message) Author() Author {
	by := ofKind[m.Kind]
	switch {
	case m.Kind == Recap:
		return ByCompaction
	case m.Role == System:
		return ByDeveloper
	case by != "":
		return by
	case m.Role == Assistant:
		return ByModel
	case m.Role == User:
		return ByPerson
	}
	if r, _ := m.Result(); r.Author != "" && r.Author != ByPerson {
		return r.Author
	}
	return ByTool
}

// IsAdded reports whether a program put the message into the conversation in the user's name: nothing in
// it is the person's word, though it may be the person's material.
func (m *Message) IsAdded() bool { return m.Role == User && m.Kind != Plain && m.Kind != Recap }

// Said is what a person said in a tool's result: the answer to a question of the tool, words about
// a call that was not allowed, or a change to what it proposed.
type Said struct {
	Asked string `json:"asked,omitempty"` // the question; empty for other words
	Text  string `json:"text"`
	// From and To are where it stands in the text of the result, in bytes. To is 0 if nobody noted it.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`
}

// Said joins what the user said in the result of a tool message, with newlines. It is empty for all others.
func (m *Message) Said() string {
	r, _ := m.Result()
	var texts []string
	for _, said := range r.Said {
		texts = append(texts, said.Text)
	}
	return strings.Join(texts, "\n")
}
