package rehydrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

const statusDescription = `Tells how large this context is, how much room is left, when the next compaction is due, and what was removed so far.`

const noteDescription = `Keep notes for the time after a compaction, when earlier messages are replaced by a summary: what was decided and why, what was ruled out, what is left to do. Notes stay word for word behind the summary. They are your own words, no rules of the user.`

const compactDescription = `Have the earlier part of this conversation compacted now, before your next request, for example when a piece of work is done. Notes stay; what is removed can be read again.`

const noteSchema = `{"type":"object","properties":{` +
	`"action":{"type":"string","enum":["write","list","remove"]},` +
	`"text":{"type":"string","description":"To write: at most 400 characters."},` +
	`"cites":{"type":"array","items":{"type":"string"},"description":"To write: ids of messages or artifacts that it came from, as they are shown to you, or turns (turn 7)."},` +
	`"id":{"type":"string","description":"To remove: the note, such as n3."}` +
	`},"required":["action"]}`

const compactSchema = `{"type":"object","properties":{` +
	`"keep_in_mind":{"type":"string","description":"What the summary should not lose."}` +
	`}}`

const noArguments = `{"type":"object","properties":{}}`

// Steering is how a model sees and steers its context. Implementations are safe for concurrent use.
type Steering interface {
	// Status says where the conversation stands.
	Status(ctx context.Context) (Status, error)
	// Count counts tokens.
	Count(text string) int
	// ChangeNotes changes the book of notes, and stores it unless change returns an error, which it
	// returns. change may be called again, with what somebody else has stored meanwhile.
	ChangeNotes(ctx context.Context, change func(*notes.Book) error) error
	// Compact has a compaction made at the end of the step, with what it is to keep in mind. The
	// answer says so; refused says why there is none, in a sentence for the model.
	Compact(ctx context.Context, keep string) (answer, refused string, err error)
}

// Status is where a conversation stands. All sizes are tokens; 0 is not known.
type Status struct {
	Session string
	// Window is the model's, Limit how large a request may be, Used how large the last one was, and
	// Mark where a compaction is due.
	Window, Limit, Used, Mark int
	// Plan is in force, nil for none.
	Plan  *plan.Plan
	Notes int
	// Unmade says that the compaction that the model asked for was not made.
	Unmade bool
}

func (h *Handler) status(ctx context.Context, _ arguments) (string, thread.Fields, string) {
	s, err := h.Steering.Status(ctx)
	if err != nil {
		return "", nil, "this is not known now; go on without it"
	}
	return s.String(), nil, ""
}

// String is the status on a few lines.
func (s Status) String() string {
	tokens := func(n int) string { return clip.Number(n) + " tokens" }
	lines := []string{"session: " + oneLine(s.Session)}
	if s.Window > 0 {
		lines = append(lines, "window: "+tokens(s.Window))
	}
	if s.Used > 0 {
		used := "used: " + tokens(s.Used) + " by the last request"
		if s.Limit > 0 {
			used += "; room: " + tokens(max(0, s.Limit-s.Used)) + " of " + clip.Number(s.Limit)
		}
		lines = append(lines, used)
	}
	switch {
	case s.Mark > s.Used && s.Used > 0:
		lines = append(lines, fmt.Sprintf("next compaction: at %s, %s from here", tokens(s.Mark), clip.Number(s.Mark-s.Used)))
	case s.Mark > 0:
		lines = append(lines, "next compaction: due")
	default:
		lines = append(lines, "next compaction: not known")
	}
	if s.Unmade {
		lines = append(lines, "the compaction that you asked for: not made; the request is as small as the policy makes it, or it failed")
	}
	removed := "removed so far: nothing"
	if !s.Plan.Empty() {
		removed = fmt.Sprintf("removed so far: %s, %s in %s; recall finds them, read_artifact shows them", clip.Count(len(s.Plan.Refs()), "record"),
			tokens(max(0, s.Plan.OriginalTokens-s.Plan.CompactedTokens)), clip.Count(max(1, s.Plan.Round), "compaction"))
	}
	return strings.Join(append(lines, removed, fmt.Sprintf("notes: %d of %d", s.Notes, notes.MaxNotes)), "\n")
}

func (h *Handler) note(ctx context.Context, args arguments) (string, thread.Fields, string) {
	var change func(*notes.Book) error
	var out string
	edit := notes.EditOf(args.Result)
	switch edit.Action {
	case "write":
		cites, problem := h.checkCites(ctx, args.Get("cites"))
		if problem != "" {
			return "", nil, problem
		}
		change = func(b *notes.Book) error {
			n, err := b.Write(edit.Text, cites, h.Steering.Count)
			out = fmt.Sprintf(notes.Noted+"%s. %s of %d.", n.ID, clip.Count(len(b.Notes), "note"), notes.MaxNotes)
			return err
		}
	case "remove":
		change = func(b *notes.Book) error {
			out = notes.Removed
			return b.Remove(edit.ID)
		}
	case "list":
		change = func(b *notes.Book) error {
			if out = "There are no notes."; len(b.Notes) > 0 {
				out = frameContent("notes", b.List())
			}
			return errUnchanged
		}
	default:
		return "", nil, "action is missing; it is write, list or remove"
	}
	err := h.Steering.ChangeNotes(ctx, func(b *notes.Book) error {
		if err := change(b); err != nil {
			return noteError{err}
		}
		return nil
	})
	refused, isOurs := errors.AsType[noteError](err)
	switch {
	case err == nil, errors.Is(err, errUnchanged):
		return out, nil, ""
	case isOurs:
		return "", nil, refused.Error()
	}
	return "", nil, "the notes could not be stored now; try again once, or go on without it"
}

// errUnchanged is returned by a change of the notes that only reads them.
var errUnchanged = errors.New("nothing is changed")

// noteError is what the model is told; any other error is that of a store.
type noteError struct{ error }

// Unwrap returns the error.
func (e noteError) Unwrap() error { return e.error }

// checkCites returns the whole ids of what a note cites: messages and artifacts of this conversation,
// and its turns. Anything else is refused.
func (h *Handler) checkCites(ctx context.Context, list gjson.Result) (cites []string, problem string) {
	given := list.Array()
	if list.Type != gjson.Null && !list.IsArray() && list.Type != gjson.String || len(given) > notes.MaxCites {
		return nil, fmt.Sprintf("cites must be a list of at most %d ids", notes.MaxCites)
	}
	for _, one := range given {
		id := cleanID(one.String())
		content, err := h.Artifacts.Artifact(ctx, id)
		switch {
		case id == "", errors.Is(err, artifact.ErrNotFound), errors.Is(err, artifact.ErrForbidden):
			return nil, fmt.Sprintf("nothing here has the id %q; cite ids as they are shown to you, or turns such as \"turn 7\", or write the note without", oneLine(id))
		case errors.Is(err, artifact.ErrExpired): // it was there
			content.ID = id
		case err != nil:
			return nil, readProblem(id, err)
		}
		cites = append(cites, content.ID)
	}
	return cites, ""
}

func (h *Handler) compact(ctx context.Context, args arguments) (string, thread.Fields, string) {
	answer, refused, err := h.Steering.Compact(ctx, args.text("keep_in_mind"))
	if err != nil {
		return "", nil, "this cannot be done now; go on without it"
	}
	return answer, nil, refused
}
