// Package notes is what a model keeps of its own context: the notes that it writes down for the time
// after a compaction, and the compaction that it asks for.
//
// Notes are the model's words. Only a call of the model writes one; what they cite must exist. The
// book is bounded: a full one refuses, and says what can be removed.
package notes

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// The names of the tools by which a model sees and steers its context.
const (
	StatusTool  = "context_status"
	NoteTool    = "context_note"
	CompactTool = "compact_now"
)

// IsTool reports whether a tool is one of these.
func IsTool(name string) bool { return name == StatusTool || name == NoteTool || name == CompactTool }

// The bounds of a book.
const (
	MaxNotes  = 40
	MaxTokens = 2_000 // of all notes, as they are shown
	MaxText   = 400   // characters of one note, and of what a compaction is to keep in mind
	MaxCites  = 8
)

// Book holds the notes of one conversation. The zero value is empty. It is not safe for concurrent
// use: stores change a copy.
type Book struct {
	Notes []plan.Note `json:"notes"`
	// Last is the number of the newest note that there ever was: ids are not used twice.
	Last int `json:"last,omitempty"`
	// Asked is the compaction that the model asked for and that is not made yet.
	Asked *Asked `json:"asked,omitempty"`
	// AskedAt is how many messages the log had when the model last asked for one; 0 if never.
	AskedAt int `json:"asked_at,omitempty"`
}

// Asked is a compaction that was asked for.
type Asked struct {
	Keep string `json:"keep,omitempty"` // what it is to keep in mind
}

// Write adds a note. One that is there already, with the same text, is not added again. The error is
// a sentence for the model.
func (b *Book) Write(text string, cites []string, count func(string) int) (plan.Note, error) {
	text = clean(text)
	switch n := utf8.RuneCountInString(text); {
	case text == "":
		return plan.Note{}, errors.New("text is missing: say in a sentence what must not be lost")
	case n > MaxText:
		return plan.Note{}, fmt.Errorf("the text has %d characters, a note has at most %d; shorten it, or write two", n, MaxText)
	case len(cites) > MaxCites:
		return plan.Note{}, fmt.Errorf("a note cites at most %d places", MaxCites)
	}
	if i := slices.IndexFunc(b.Notes, func(n plan.Note) bool { return n.Text == text }); i >= 0 {
		return b.Notes[i], nil
	}
	note := plan.Note{ID: fmt.Sprintf("n%d", b.Last+1), Text: text, Cites: cites}
	next := append(slices.Clip(b.Notes), note)
	if len(next) > MaxNotes {
		return plan.Note{}, fmt.Errorf("the book of notes is full: it holds %d of them. %s", MaxNotes, b.removable())
	}
	if tokens := count((&plan.Plan{Notes: next}).NotesText()); tokens > MaxTokens {
		return plan.Note{}, fmt.Errorf("the book of notes is full: with this one it would take %d tokens of %d. %s", tokens, MaxTokens, b.removable())
	}
	b.Notes, b.Last = next, b.Last+1
	return note, nil
}

// removable says what a full book can do without: the oldest notes.
func (b *Book) removable() string {
	const shown = 5
	var names []string
	for _, n := range b.Notes[:min(shown, len(b.Notes))] {
		names = append(names, fmt.Sprintf("%s (%q)", n.ID, clip.Line(n.Text, 40)))
	}
	return "Remove what is done or no longer true first; the oldest are " + strings.Join(names, ", ")
}

// Remove takes a note out. The error is a sentence for the model.
func (b *Book) Remove(id string) error {
	i := slices.IndexFunc(b.Notes, func(n plan.Note) bool { return n.ID == id })
	if i < 0 {
		return fmt.Errorf("there is no note %q; list shows the notes", clip.Line(id, 20))
	}
	b.Notes = slices.Delete(slices.Clone(b.Notes), i, i+1)
	return nil
}

// Ask notes that the model asks for a compaction, when the log has so many messages.
func (b *Book) Ask(keep string, messages int) {
	b.Asked, b.AskedAt = &Asked{Keep: clean(clip.Middle(keep, MaxText))}, messages
}

// List shows all notes, one on a line.
func (b *Book) List() string {
	lines := make([]string, len(b.Notes))
	for i, n := range b.Notes {
		lines[i] = n.String()
	}
	return strings.Join(lines, "\n")
}

// clean puts a text on one line, without control characters.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}

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
