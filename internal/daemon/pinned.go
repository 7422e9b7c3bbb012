package daemon

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/store"
)

// pinned commits a plan only if the version in force is the one that the request
// named with If-Match, as one step with the commit itself.
type pinned struct{ store.Plans }

type pinKey struct{}

// pin says which version a commit must follow; api.Any says nothing.
func pin(ctx context.Context, version int) context.Context {
	if version == api.Any {
		return ctx
	}
	return context.WithValue(ctx, pinKey{}, version)
}

// Commit implements store.Plans.
func (p pinned) Commit(ctx context.Context, threadID string, expected int, c store.Commit) (int, error) {
	if want, ok := ctx.Value(pinKey{}).(int); ok && want != expected {
		return 0, &store.ConflictError{ThreadID: threadID, Want: want, Have: expected}
	}
	return p.Plans.Commit(ctx, threadID, expected, c)
}
