package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/ourform"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// The document that holds the key of signatures.
const (
	signingKind = "signing"
	signingID   = "summary-key"
)

// signingKey is the key that summaries are signed with, once it was read.
type signingKey struct {
	mu  sync.Mutex
	key string
}

func (s *signingKey) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// loadSigningKey reads the key, or makes it, when it is first needed. Where none is there and none can
// be written, nothing was signed yet: the sessions go on without, and it is tried again.
func (c *Compactor) loadSigningKey(ctx context.Context) error {
	if !c.config.Sign || c.signing.get() != "" {
		return nil
	}
	key, err := store.Secret(ctx, c.config.Documents, signingKind, signingID)
	if err != nil {
		if _, missing := c.config.Documents.Document(ctx, signingKind, signingID); errors.Is(missing, store.ErrNotFound) {
			return nil
		}
		return fmt.Errorf("the key of signatures: %w", err)
	}
	c.signing.mu.Lock()
	defer c.signing.mu.Unlock()
	c.signing.key = string(key)
	return nil
}

// markInjected marks messages in the user's name that nobody certainly wrote, and, where
// there is a key, those of the user's and the model's that only look like what we write:
// a tool may have told the model to repeat it. What stands in the system's name is whoever
// made the request's. What the log holds was judged when it came.
func (s *Session) markInjected(messages []thread.Message, before *thread.Message) []thread.Message {
	messages = injected.MarkInjected(messages, before)
	key := s.c.signing.get()
	if key == "" {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if m.Role == thread.System || m.Kind == thread.Injected || !ourform.IsSummary(m) {
			continue
		}
		if m.Kind = thread.Injected; ourform.IsAuthentic(m, key) {
			m.Kind = thread.Recap
		}
	}
	return out
}
