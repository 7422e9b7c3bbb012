package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// notesTail is how much of the end of a transcript is searched for notes, in bytes.
const notesTail = 16 << 20

// notesIn are the notes that a model has written by MCP, as the lines of a transcript of Claude Code
// tell, without those of its sub-agents.
func notesIn(text []byte) []plan.Note {
	var calls []thread.Message
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(notes.NoteTool)) && !bytes.Contains(line, []byte(notes.Noted)) && !bytes.Contains(line, []byte(notes.Removed)) {
			continue
		}
		v := gjson.ParseBytes(line)
		if v.Get("isSidechain").Bool() {
			continue
		}
		for _, part := range v.Get("message.content").Array() {
			switch part.Get("type").Str {
			case "tool_use":
				call := thread.ToolCall{ID: part.Get("id").Str, Name: part.Get("name").Str, Arguments: part.Get("input").Raw}
				calls = append(calls, thread.Message{Role: thread.Assistant, Parts: []thread.Part{call}})
			case "tool_result":
				said := part.Get("content.0.text").Str + part.Get("content").Str
				result := thread.ToolResult{CallID: part.Get("tool_use_id").Str, Content: []thread.Part{thread.Text{Text: said}}}
				calls = append(calls, thread.Message{Role: thread.Tool, Parts: []thread.Part{result}})
			}
		}
	}
	return notes.Fold(calls)
}

// notesPhrase says how many notes there are and about what they take; "" for none.
func notesPhrase(all []plan.Note) string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%s (~%s tokens)", plural(len(all), "note"), number(len((&plan.Plan{Notes: all}).NotesText())/4))
}

// documents is another name, since store.Documents has a method of its own name.
type documents = store.Documents

// runNotes are documents that know the newest notes of each conversation that were stored through them.
type runNotes struct {
	documents
	mu    sync.Mutex
	books map[string][]plan.Note
}

// Put implements store.Documents.
func (d *runNotes) Put(ctx context.Context, doc store.Document) (int, error) {
	version, err := d.documents.Put(ctx, doc)
	var book notes.Book
	if err == nil && doc.Kind == "notes" && json.Unmarshal(doc.Body, &book) == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.books[doc.ID] = book.Notes
	}
	return version, err
}

func (d *runNotes) all() (all []plan.Note) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, book := range d.books {
		all = append(all, book...)
	}
	return all
}

// runRoom knows the newest prompt of the longest conversation.
type runRoom struct {
	mu     sync.Mutex
	prompt event.Event
}

// Emit implements event.Sink.
func (r *runRoom) Emit(_ context.Context, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Type == event.PromptPrepared && (e.ThreadID == r.prompt.ThreadID || e.TokensBefore >= r.prompt.TokensBefore) {
		r.prompt = e
	}
}

// phrase says how much room is left until the next compaction; "" if that is not known.
func (r *runRoom) phrase() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	mark, known := r.prompt.Details["mark"].(int)
	switch room := mark - r.prompt.TokensAfter; {
	case !known:
		return ""
	case room <= 0:
		return "compacts next"
	default:
		return "~" + shortNumber(room) + " until it compacts"
	}
}
