package notes

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// What the tool answers.
const (
	Noted   = "Noted as "
	Removed = "Removed."
)

// Refusal begins the answer of a call that changed nothing. What follows may quote notes and what the call said.
const Refusal = "Error: "

// Edit is what a call of context_note asks for. Cites may be anything: whoever answers the call looks them up.
type Edit struct {
	Action, Text, ID string
	Cites            []string
}

// EditOf reads the arguments of a call. Models write numbers as texts and texts as numbers, and a list of one as that one.
func EditOf(args gjson.Result) Edit {
	text := func(v gjson.Result) string {
		if v.Type == gjson.String || v.Type == gjson.Number {
			return v.String()
		}
		return ""
	}
	e := Edit{Action: text(args.Get("action")), Text: text(args.Get("text")), ID: strings.TrimSpace(text(args.Get("id")))}
	for _, one := range args.Get("cites").Array() {
		e.Cites = append(e.Cites, one.String())
	}
	return e
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
			if isNoteTool(c.Name) && len(c.Arguments) <= maxArguments && rawjson.Valid(c.Arguments) {
				asked[c.ID] = EditOf(gjson.Parse(c.Arguments))
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

// isID is how the ids of notes are written.
var isID = lazyregexp.New(`^n[0-9]{1,9}$`)

// maxCite bounds one of what a note cites, in characters.
const maxCite = 80

// maxArguments bounds a call that can be one of the tool's, in bytes.
const maxArguments = 16 << 10

func isNoteTool(name string) bool {
	return toolclass.ClassOf(name) == toolclass.Notes && strings.HasSuffix(name, NoteTool)
}

// apply returns the notes after an edit that was answered so.
func (e Edit) apply(all []plan.Note, answer string) []plan.Note {
	answer, _, _ = strings.Cut(answer, Refusal)
	_, noted, _ := strings.Cut(answer, Noted) // agents write something before it
	id, _, done := strings.Cut(noted, ".")
	switch {
	case e.Action == "write" && done && isID().MatchString(id):
		n := plan.Note{ID: id, Text: clip.Middle(clean(e.Text), MaxText)}
		for _, one := range e.Cites[:min(len(e.Cites), MaxCites)] {
			n.Cites = append(n.Cites, clip.Line(clean(one), maxCite))
		}
		all = slices.DeleteFunc(all, func(o plan.Note) bool { return o.ID == n.ID })
		all = append(all, n)
		return all[max(0, len(all)-MaxNotes):]
	case e.Action == "remove" && strings.Contains(answer, Removed):
		return slices.DeleteFunc(all, func(o plan.Note) bool { return o.ID == e.ID })
	}
	return all
}
