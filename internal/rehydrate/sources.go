package rehydrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// AmbiguousError says that several ids begin with the given one.
type AmbiguousError struct {
	ID string
	// Candidates are whole ids.
	Candidates []string
}

// maxCandidates is how many ids an error lists.
const maxCandidates = 10

// Error lists the candidates.
func (e *AmbiguousError) Error() string {
	shown := e.Candidates[:min(maxCandidates, len(e.Candidates))]
	text := fmt.Sprintf("%q is the beginning of several ids: %s", e.ID, strings.Join(shown, ", "))
	if more := len(e.Candidates) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Content is what an id stands for.
type Content struct {
	// ID is the whole id of the artifact or message.
	ID       string `json:"id"`
	ThreadID string `json:"thread_id"`
	// MessageIDs are the messages that the text is from, in thread order.
	MessageIDs []thread.ID `json:"message_ids"`
	Turn       int         `json:"turn"`           // 0 when it is not known
	Tool       string      `json:"tool,omitempty"` // the tool that made it, or empty
	Text       string      `json:"text"`
}

// ContentOf is the content of a stored artifact.
func ContentOf(m artifact.Metadata, text string) Content {
	return Content{ID: m.ID, ThreadID: m.ThreadID, MessageIDs: m.MessageIDs, Turn: m.Turn, Tool: m.Tool, Text: text}
}

// Artifacts reads content by its id. The error wraps artifact.ErrNotFound,
// artifact.ErrExpired, artifact.ErrCorrupt or artifact.ErrForbidden, or is an
// *AmbiguousError; any other text is not shown to the model. Implementations are safe for
// concurrent use.
type Artifacts interface {
	Artifact(ctx context.Context, id string) (Content, error)
}

// Recaller searches what was removed, best first. Implementations are safe for concurrent
// use.
type Recaller interface {
	Recall(ctx context.Context, query string, limit int) ([]recall.Hit, error)
}

// StoredArtifacts reads the artifacts that one requester may see, of any sensitivity,
// since they are asked for.
type StoredArtifacts struct {
	Source    Source
	Requester artifact.Requester
	// ThreadID limits reading to the artifacts of one thread; "" reads all.
	ThreadID string
}

// Artifact implements Artifacts. An artifact of another thread is as unknown as one of
// another tenant.
func (s StoredArtifacts) Artifact(ctx context.Context, id string) (Content, error) {
	m, err := s.Source.Metadata(ctx, s.Requester, id)
	if err != nil {
		return Content{}, err
	}
	if s.ThreadID != "" && m.ThreadID != s.ThreadID {
		return Content{}, fmt.Errorf("rehydrate.StoredArtifacts(%s): %w", id, artifact.ErrNotFound)
	}
	m, text, err := s.Source.Get(ctx, s.Requester, id)
	if err != nil {
		return Content{}, err
	}
	return ContentOf(m, text), nil
}
