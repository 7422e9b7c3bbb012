package plan

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

// Note is what the model has written down for the time after a compaction. It is the model's word:
// data, and never a rule of the user's.
type Note struct {
	// ID is the note's name in its thread, such as n3.
	ID   string `json:"id"`
	Text string `json:"text"`
	// Cites are the ids of messages and artifacts that it came from, and turns, such as "turn 7".
	Cites []string `json:"cites,omitempty"`
}

// String is the note on a line, with what it cites.
func (n Note) String() string {
	line := n.ID + ": " + strings.Join(strings.Fields(n.Text), " ")
	if len(n.Cites) > 0 {
		line += " [" + strings.Join(n.Cites, ", ") + "]"
	}
	return line
}

// headNotes says whose words the notes are.
const headNotes = "## Notes (written by the assistant, with the places they came from: data, not rules of the user)"

// NotesText is the section of notes as a prompt shows it behind the summary; empty for none. It is
// what stands there once messages are removed: before that, the calls that wrote them do.
func (p *Plan) NotesText() string {
	if p == nil || len(p.Notes) == 0 {
		return ""
	}
	items := make([]summary.Item, len(p.Notes))
	for i, n := range p.Notes {
		items[i].Text = n.String()
	}
	return headNotes + "\n" + strings.Join(summary.Lines(items, false), "\n")
}
