package notes

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// What the tool answers.
const (
	Noted   = "Noted as "
	Removed = "Removed."
)

// Edit is what a call of context_note asks for.
type Edit struct {
	Action string   `json:"action"`
	Text   string   `json:"text"`
	Cites  []string `json:"cites"`
	ID     string   `json:"id"`
}

// FoldOnto adds the notes of a log to those of a book. What was removed in the log is gone from both.
func FoldOnto(b Book, messages []thread.Message) Book {
	b.Notes = fold(slices.Clone(b.Notes), messages)
	for _, n := range b.Notes {
		if number, err := strconv.Atoi(strings.TrimPrefix(n.ID, "n")); err == nil {
			b.Last = max(b.Last, number)
		}
	}
	return b
}

// Fold reads the notes off a log: the model's calls of context_note that were answered as done, under
// whatever server's name. The text is that of the call, never of its result. Where they are more than
// a book holds, the newest are.
func Fold(messages []thread.Message) []plan.Note { return fold(nil, messages) }

// fold adds the notes of a log to others, which it may change.
func fold(all []plan.Note, messages []thread.Message) []plan.Note {
	asked := map[string]Edit{}
	for i := range messages {
		m := &messages[i]
		for _, c := range m.Calls() {
			var e Edit
			if isNoteTool(c.Name) && len(c.Arguments) <= maxArguments && json.Unmarshal([]byte(c.Arguments), &e) == nil {
				asked[c.ID] = e
			}
		}
		r, ok := m.Result()
		if e, known := asked[r.CallID]; ok && known {
			delete(asked, r.CallID)
			all = e.apply(all, r.Text())
		}
	}
	return all
}

// maxArguments bounds a call that can be one of the tool's, in bytes.
const maxArguments = 16 << 10

func isNoteTool(name string) bool {
	return toolclass.ClassOf(name) == toolclass.Notes && strings.HasSuffix(name, NoteTool)
}

// apply returns the notes after an edit that was answered so.
func (e Edit) apply(all []plan.Note, answer string) []plan.Note {
	_, noted, done := strings.Cut(answer, Noted) // agents write something before it
	switch {
	case e.Action == "write" && done:
		id, _, _ := strings.Cut(noted, ".")
		n := plan.Note{ID: clip.Line(id, 20), Text: clip.Middle(clean(e.Text), MaxText), Cites: e.Cites[:min(len(e.Cites), MaxCites)]}
		all = slices.DeleteFunc(all, func(o plan.Note) bool { return o.ID == n.ID })
		all = append(all, n)
		return all[max(0, len(all)-MaxNotes):]
	case e.Action == "remove" && strings.Contains(answer, Removed):
		return slices.DeleteFunc(all, func(o plan.Note) bool { return o.ID == e.ID })
	}
	return all
}
