package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// The document that holds the signing key.
const (
	signingKind = "signing"
	signingID   = "summary-key"
)

// signingKey is the key of signatures, once it was read.
type signingKey struct {
	mu  sync.Mutex
	key string
}

func (s *signingKey) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// loadSigningKey reads the key, or makes it when it is first needed. Where there is none
// and none can be written, nothing was signed yet: sessions continue without a key, and
// the next load tries again.
func (c *Compactor) loadSigningKey(ctx context.Context) error {
	if !c.config.Sign || c.signing.get() != "" {
		return nil
	}
	key, err := store.Secret(ctx, c.config.Documents, signingKind, signingID)
	if err != nil {
		if _, missing := c.config.Documents.Document(ctx, signingKind, signingID); errors.Is(missing, store.ErrNotFound) {
			return nil
		}
		return fmt.Errorf("read the signing key: %w", err)
	}
	c.signing.mu.Lock()
	defer c.signing.mu.Unlock()
	c.signing.key = string(key)
	return nil
}

// markInjected marks messages in the user's name that no person wrote and, where there is
// a key, messages that only look like our summaries: a tool may have told the model to
// repeat one. System messages are left alone, since they come from whoever makes the
// request.
func (s *signingKey) markInjected(messages []thread.Message, before *thread.Message) []thread.Message {
	messages = injected.MarkInjected(messages, before)
	key := s.get()
	if key == "" {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if m.Role == thread.System || m.Kind == thread.Injected || m.IsAdded() || !ownformat.IsSummary(m) {
			continue
		}
		if m.Kind = thread.Injected; ownformat.IsAuthentic(m, key) {
			m.Kind = thread.Recap
		}
	}
	return out
}
