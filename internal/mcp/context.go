package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/thread"
)

type statusArgs struct {
	Session string `json:"session" jsonschema:"The id of the session, or the beginning of it, as sessions lists it; or latest."`
	answerSize
}

type noteArgs struct {
	Action  string   `json:"action" jsonschema:"write, list or remove."`
	Text    string   `json:"text,omitempty" jsonschema:"To write: at most 400 characters."`
	Cites   []string `json:"cites,omitempty" jsonschema:"To write: ids of messages or artifacts that it came from."`
	ID      string   `json:"id,omitempty" jsonschema:"To remove: the note, such as n3."`
	Session string   `json:"session,omitempty" jsonschema:"The id of your session, as sessions lists it: to list and to remove notes."`
	answerSize
}

type compactNowArgs struct{ answerSize }

// addContextTools registers the tools by which a model sees its context and keeps notes.
func (s *Server) addContextTools(reads func(name, title, description string) *sdk.Tool) {
	addTool(s, reads(notes.StatusTool, "The state of a context", `Tells what was removed from a session so far, and how many notes it has.`), s.contextStatus)
	addTool(s, reads(notes.NoteTool, "Keep notes", `Keep notes for the time after a compaction: what was decided and why, what was ruled out, what is left to do. They are kept in the record of your session, and shown again after a compaction where Palimpsest's hooks are installed. They are your own words, no rules of the user.`), s.contextNote)
	addTool(s, reads(notes.CompactTool, "Compact now", `Says how this session can be compacted now.`), func(context.Context, compactNowArgs, int) (string, error) {
		return "", errors.New(cannotCompact)
	})
}

func (s *Server) contextStatus(ctx context.Context, in statusArgs, _ int) (string, error) {
	one, c, err := s.openSession(ctx, in.Session)
	if err != nil {
		return "", err
	}
	status := rehydrate.Status{Session: one.ID, Plan: c.Plan, Notes: len(notes.Fold(c.Log.Messages()))}
	text := status.String() + "\nmessages: " + clip.Number(c.Log.Len())
	if n := len(c.OwnCompactions); n > 0 {
		text += "\nThe agent compacted by itself " + clip.Count(n, "time") + "."
	}
	return text + "\nHow full the window is, only your client knows.", nil
}

// cannotCompact is the answer of compact_now: nobody who speaks this protocol can compact a client.
const cannotCompact = "by this protocol your client cannot be compacted: ask the user for the client's own command (/compact in Claude Code, Codex and others, between two turns), or go on: the client compacts by itself when its window is full. Write down with context_note what must not be lost"

func (s *Server) contextNote(ctx context.Context, in noteArgs, _ int) (string, error) {
	if in.Session == "" && in.Action != "write" {
		return "", errors.New("session: want the id of your session, to list or to remove its notes; the tool sessions lists them")
	}
	call, _ := json.Marshal(map[string]any{"action": in.Action, "text": in.Text, "cites": in.Cites, "id": in.ID}) // texts can be encoded
	// Nobody else has the id, and the same note has it again.
	book := notes.Book{Last: int(crc32.ChecksumIEEE(call) % 1_000_000)}
	if in.Session != "" {
		_, c, err := s.openSession(ctx, in.Session)
		if err != nil {
			return "", err
		}
		book.Notes = notes.Fold(c.Log.Messages())
	}
	h := rehydrate.Handler{Artifacts: &contentFinder{s: s, session: in.Session}, Steering: recorded{book: book, count: s.options.Count}}
	answer, err := h.Answer(ctx, thread.ToolCall{Name: notes.NoteTool, Arguments: string(call)})
	if err == nil && answer.Outcome == thread.Failure {
		err = errors.New(answer.Text())
	}
	return answer.Text(), err
}

// recorded are the notes in the record of a session: what changes them is the call itself.
type recorded struct {
	book  notes.Book
	count func(string) int
}

// Count implements rehydrate.Steering.
func (r recorded) Count(text string) int { return r.count(text) }

// ChangeNotes implements rehydrate.Steering.
func (r recorded) ChangeNotes(_ context.Context, change func(*notes.Book) error) error {
	return change(&r.book)
}

// Status implements rehydrate.Steering.
func (recorded) Status(context.Context) (rehydrate.Status, error) { return rehydrate.Status{}, nil }

// Compact implements rehydrate.Steering.
func (recorded) Compact(context.Context, string) (answer, refused string, err error) {
	return "", cannotCompact, nil
}
