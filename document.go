package palimpsest

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/palimpsest-ai/palimpsest/store"
)

// document is what this process knows of a document of a conversation.
type document[T any] struct {
	isLoaded bool
	version  int // 0: there is none
	value    T   // as it is kept
}

// load asks the store once. What is kept and cannot be understood is as if it were
// not there.
func (d *document[T]) load(ctx context.Context, documents store.Documents, kind, id string) error {
	if d.isLoaded {
		return nil
	}
	found, err := documents.Document(ctx, kind, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	d.isLoaded, d.version = true, found.Version
	var value T
	if err == nil && json.Unmarshal(found.Body, &value) == nil {
		d.value = value
	}
	return nil
}

// save keeps a value in place of what is there, whoever wrote it. Where that fails
// nothing is known to be kept.
func (d *document[T]) save(ctx context.Context, documents store.Documents, kind, id string, value T) {
	body, err := json.Marshal(value)
	if err != nil {
		return
	}
	for range 2 { // another process may have kept its own meanwhile
		next, err := documents.Put(ctx, store.Document{Kind: kind, ID: id, Version: d.version, Body: body})
		if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
			d.version = conflict.Have
			continue
		}
		if err == nil {
			d.isLoaded, d.version, d.value = true, next, value
		}
		return
	}
}
