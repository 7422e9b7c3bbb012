package proxy

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/palimpsest-ai/palimpsest/store"
)

// secret is the key that tokens are signed with: that of the options, else one kept in the
// documents (sealed if the store seals), else one of this process.
type secret struct {
	mu  sync.Mutex
	key []byte
}

// secretKind and secretID name the document that holds the key.
const (
	secretKind = "proxy"
	secretID   = "native-compaction-key"
)

// load returns the key, which is read or made when it is first needed. After an error the store
// is asked again the next time.
func (s *secret) load(ctx context.Context, o *Options) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return s.key, nil
	}
	key := o.Secret
	if len(key) == 0 && o.Documents != nil {
		var err error
		if key, err = store.Secret(ctx, o.Documents, secretKind, secretID); err != nil {
			return nil, fmt.Errorf("key of native compaction: %w", err)
		}
	}
	if len(key) == 0 {
		key = NewSecret()
	}
	s.key = key
	return key, nil
}

// NewSecret makes a key for Options.Secret, of 256 random bits.
func NewSecret() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return key
}
