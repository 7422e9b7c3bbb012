package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// secretTries is how often a secret is looked for that another process has just made.
const secretTries = 4

// Secret returns the random key, of 256 bits, that stands among the documents under a
// kind and an id. The first who needs it writes it, and who comes second reads that: all
// processes over one store have the same. It is sealed where the store seals. The error
// is that of the documents.
func Secret(ctx context.Context, documents Documents, kind, id string) ([]byte, error) {
	version := 0
	for range secretTries {
		d, err := documents.Document(ctx, kind, id)
		switch {
		case err == nil:
			var text string
			if err := json.Unmarshal(d.Body, &text); err != nil {
				return nil, fmt.Errorf("secret %s/%s: %w", kind, id, err)
			}
			return hex.DecodeString(text)
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}
		key := make([]byte, 32)
		rand.Read(key) // never fails
		_, err = documents.Put(ctx, Document{Kind: kind, ID: id, Version: version, Body: []byte(`"` + hex.EncodeToString(key) + `"`)})
		var conflict *ConflictError
		switch {
		case errors.As(err, &conflict):
			version = conflict.Have // another process has made it, or had it removed
		case err != nil:
			return nil, err
		}
	}
	return nil, ErrConflict
}
