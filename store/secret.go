package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// secretTries bounds how often Secret tries when other processes create or remove the
// secret at the same time.
const secretTries = 4

// Secret returns the random 256-bit key in the document of a kind and id, and creates it
// if it does not exist, so that all processes with one store share it. The error is that
// of Documents.
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
			version = conflict.Have // another process has created or removed it
		case err != nil:
			return nil, err
		}
	}
	return nil, ErrConflict
}
