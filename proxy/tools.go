package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// withTools are the client's tools and ours behind them. Where the client has one
// of these names itself, none of ours are offered.
func withTools(tools []prompt.Tool, h *rehydrate.Handler) []prompt.Tool {
	return append(slices.Clip(tools), h.Tools()...)
}

// taken reports whether the client has a tool of one of our names.
func taken(tools []prompt.Tool) bool {
	return slices.ContainsFunc(tools, func(t prompt.Tool) bool {
		return t.Name == rehydrate.ReadArtifact || t.Name == rehydrate.Recall
	})
}

// removed is what the plan in force hides of a conversation. The log has all of
// it, so that nothing else need be stored.
type removed struct {
	t  *Transport
	id string
}

func (r removed) entries(ctx context.Context) ([]recall.Entry, error) {
	log, err := r.t.log.Load(ctx, r.id)
	if err != nil {
		return nil, err
	}
	p, _, err := r.t.plans.Current(ctx, r.id)
	if err != nil || p == nil {
		return nil, err
	}
	// A fork's plan may still carry its parent's name in what it was made from.
	return recall.Removed(log, p), nil
}

// Artifact gives the content of an artifact, or of a removed message.
func (r removed) Artifact(ctx context.Context, id string) (rehydrate.Content, error) {
	entries, err := r.entries(ctx)
	if err != nil {
		return rehydrate.Content{}, err
	}
	for _, e := range entries {
		if id != "" && (e.ArtifactID == id || e.MessageID == thread.ID(id)) {
			return rehydrate.Content{ID: id, Tool: e.Tool, Turn: e.Turn, Text: e.Text}, nil
		}
	}
	return rehydrate.Content{}, fmt.Errorf("%s: %w", id, artifact.ErrNotFound)
}

// Recall searches what was removed.
func (r removed) Recall(ctx context.Context, query string, limit int) ([]recall.Hit, error) {
	entries, err := r.entries(ctx)
	if err != nil {
		return nil, err
	}
	return recall.NewIndex(entries).Search(query, &recall.Options{Limit: limit}), nil
}
