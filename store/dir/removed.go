package dir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// lineVersion is the version of a line of removed.jsonl.
const lineVersion = 1

// line is a recall.Entry as it is written.
type line struct {
	Version    int         `json:"v"`
	ThreadID   string      `json:"thread_id"`
	MessageID  thread.ID   `json:"message_id"`
	Position   int         `json:"position"`
	Turn       int         `json:"turn"`
	Role       thread.Role `json:"role"`
	Tool       string      `json:"tool,omitempty"`
	Call       string      `json:"call,omitempty"`
	Action     string      `json:"action"`
	Reason     string      `json:"reason,omitempty"`
	Keywords   []string    `json:"keywords,omitempty"`
	Summary    string      `json:"summary,omitempty"`
	Time       time.Time   `json:"time,omitzero"`
	ArtifactID string      `json:"artifact_id,omitempty"`
	Text       string      `json:"text,omitempty"`
	// Bytes is the text where it is not valid UTF-8, which JSON cannot hold.
	Bytes []byte `json:"text_bytes,omitempty"`
	// Elsewhere says that the text is the content of the artifact. It is not
	// written twice, so that it expires once.
	Elsewhere bool `json:"text_in_artifact,omitempty"`
}

func lineOf(e *recall.Entry) line {
	l := line{
		Version: lineVersion, ThreadID: e.ThreadID, MessageID: e.MessageID, Position: e.Position, Turn: e.Turn,
		Role: e.Role, Tool: e.Tool, Call: e.Call, Action: e.Action.String(), Reason: e.Reason, Keywords: e.Keywords,
		Summary: e.Summary, Time: e.Time, ArtifactID: e.ArtifactID,
	}
	switch {
	case elsewhere(e):
		l.Elsewhere = true
	case utf8.ValidString(e.Text):
		l.Text = e.Text
	default:
		l.Bytes = []byte(e.Text)
	}
	return l
}

// elsewhere reports whether the artifact of an entry holds just its text.
func elsewhere(e *recall.Entry) bool {
	return e.ArtifactID != "" && artifact.IDOf(e.ThreadID, e.Text) == e.ArtifactID
}

func (l *line) entry() (recall.Entry, error) {
	e := recall.Entry{
		ThreadID: l.ThreadID, MessageID: l.MessageID, Position: l.Position, Turn: l.Turn, Role: l.Role,
		Tool: l.Tool, Call: l.Call, Reason: l.Reason, Keywords: l.Keywords, Summary: l.Summary, Time: l.Time,
		ArtifactID: l.ArtifactID, Text: l.Text,
	}
	if l.Version != lineVersion {
		return e, fmt.Errorf("version %d of a removed message; this program reads version %d", l.Version, lineVersion)
	}
	if len(l.Bytes) > 0 {
		e.Text = string(l.Bytes)
	}
	for a := plan.Clear; a <= plan.Drop; a++ {
		if a.String() == l.Action {
			e.Action = a
			return e, nil
		}
	}
	return e, fmt.Errorf("action %q is not known", l.Action)
}

// kept is an entry as it was read.
type kept struct {
	recall.Entry
	// missing says why there is no text; nil when there is.
	missing error
}

// key tells lines apart: the same message is written again only when it says
// something else (a caller used the id twice) or has become an artifact.
type key struct {
	thread   string
	message  thread.ID
	artifact string
	text     string
}

func keyOf(e *recall.Entry) key {
	return key{e.ThreadID, e.MessageID, e.ArtifactID, artifact.IDOf("", e.Text)}
}

// removed reads one thread's folder: every line that was ever written, in
// order, and what could not be read.
func (s *Store) removed(ctx context.Context, folder string) ([]kept, []Damage, error) {
	name := path.Join(folder, removedFile)
	data, err := s.files.Root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var entries []kept
	var damage []Damage
	for n := 1; len(data) > 0; n++ {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		row, rest, ended := bytes.Cut(data, []byte{'\n'})
		data = rest
		if len(bytes.TrimSpace(row)) == 0 {
			continue
		}
		var l line
		err := json.Unmarshal(row, &l)
		if err != nil && !ended {
			damage = append(damage, Damage{Path: name, Line: n, Reason: "the line was cut off while it was written; saving its thread again writes it anew"})
			continue
		}
		var e recall.Entry
		if err == nil {
			e, err = l.entry()
		}
		if err != nil {
			damage = append(damage, Damage{Path: name, Line: n, Reason: err.Error()})
			continue
		}
		k := kept{Entry: e}
		if l.Elsewhere {
			_, k.Text, k.missing = s.artifacts.Get(ctx, artifact.Requester{}, e.ArtifactID)
			if k.missing != nil && !errors.Is(k.missing, artifact.ErrExpired) {
				damage = append(damage, Damage{Path: name, Line: n, Reason: fmt.Sprintf("the text of message %s: %v", e.MessageID, k.missing)})
			}
		}
		entries = append(entries, k)
	}
	return entries, damage, nil
}

// latest keeps of each message what it said, once, with its artifact where it
// has one.
func latest(entries []kept) []kept {
	type said struct {
		thread  string
		message thread.ID
		text    string
	}
	at := make(map[said]int, len(entries))
	out := entries[:0:0]
	for _, k := range entries {
		id := said{k.ThreadID, k.MessageID, k.Text}
		n, known := at[id]
		switch {
		case !known:
			at[id] = len(out)
			out = append(out, k)
		case out[n].ArtifactID == "":
			out[n] = k
		}
	}
	return out
}
