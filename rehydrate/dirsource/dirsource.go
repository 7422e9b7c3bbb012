// Package dirsource lets package rehydrate read from a store in a directory, for
// programs: what was put aside, and any removed message by its id.
package dirsource

import (
	"context"
	"errors"

	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/store/dir"
)

// Source is a rehydrate.Artifacts and a rehydrate.Recaller over a store. It is
// safe for concurrent use.
type Source struct {
	Store *dir.Store
	// ThreadID keeps it to one thread; "" is all.
	ThreadID string
}

// Artifact implements rehydrate.Artifacts. The beginning of an id will do where
// it means one alone.
func (s Source) Artifact(ctx context.Context, id string) (rehydrate.Content, error) {
	c, err := s.Store.Artifact(ctx, id, s.ThreadID)
	var ambiguous *dir.AmbiguousError
	switch {
	case errors.As(err, &ambiguous):
		return rehydrate.Content{}, &rehydrate.AmbiguousError{ID: ambiguous.ID, Candidates: ambiguous.Candidates}
	case err != nil:
		return rehydrate.Content{}, err
	}
	return rehydrate.Content{ID: c.ID, Tool: c.Tool, Turn: c.Turn, Text: c.Text}, nil
}

// Recall implements rehydrate.Recaller. Damaged parts of the store are passed
// over; dir.Store.Check reports them.
func (s Source) Recall(ctx context.Context, query string, limit int) ([]recall.Hit, error) {
	hits, _, err := s.Store.Recall(ctx, query, &recall.Options{Limit: limit, ThreadID: s.ThreadID})
	return hits, err
}
