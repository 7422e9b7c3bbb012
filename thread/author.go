package thread

import "strings"

// Author is who wrote a text. It is settled where the text is read, from the structure of the file or
// the request, and is no part of a message's identity.
type Author string

// The authors of messages. What the user said within a tool's result is in its Said.
const (
	ByPerson     Author = "person"
	ByModel      Author = "model"
	ByDeveloper  Author = "developer"  // instructions of the system or the developer
	ByTool       Author = "tool"       // whoever ran it
	ByHarness    Author = "harness"    // the agent's program, in the user's name
	ByCompaction Author = "compaction" // a summary of an earlier compaction, ours or the agent's own
)

// Author returns who wrote a message. An unknown role is the tool's: nothing of it is trusted.
func (m *Message) Author() Author {
	switch {
	case m.Kind == Recap:
		return ByCompaction
	case m.Role == Assistant:
		return ByModel
	case m.Role == User && m.Kind == Injected:
		return ByHarness
	case m.Role == User:
		return ByPerson
	case m.Role == System:
		return ByDeveloper
	}
	return ByTool
}

// Said is what a person said in a tool's result: the answer to a question of the tool, or words about
// a call that was not allowed.
type Said struct {
	Asked string `json:"asked,omitempty"` // the question; empty for other words
	Text  string `json:"text"`
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
