package proxy

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/store"
)

// records are values that outlive the process beside logs and plans, by id, in documents of one kind.
// They are safe for concurrent use.
type records[T any] struct {
	documents store.Documents
	kind      string
	// maxBytes bounds the document of a value; a larger one is not kept. 0 is no bound.
	maxBytes int
	// cache holds those that were used last; nil holds none.
	cache *lru.Cache[string, record[T]]
}

// record is a value with the version of its document; nil and 0 if there is none.
type record[T any] struct {
	value   *T
	version int
}

// get returns a record. An id that no document can have has none.
func (r records[T]) get(ctx context.Context, id string) (found record[T], err error) {
	if store.CheckName(r.kind, id) != nil {
		return found, nil
	}
	if r.cache != nil {
		if known, ok := r.cache.Get(id); ok {
			return known, nil
		}
	}
	d, err := r.documents.Document(ctx, r.kind, id)
	found.version = d.Version
	if err == nil {
		err = json.Unmarshal(d.Body, &found.value)
	} else if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	if err == nil && r.cache != nil {
		r.cache.Put(id, found, 1)
	}
	return found, err
}

// put replaces the value of a record, and returns the new one with its size in bytes; a nil value
// forgets it. The error is store.ErrConflict if another writer was faster.
func (r records[T]) put(ctx context.Context, id string, before record[T], value *T) (after record[T], size int, err error) {
	if store.CheckName(r.kind, id) != nil {
		return after, 0, nil
	}
	var body []byte
	if value != nil {
		if body, err = json.Marshal(value); err != nil {
			return after, 0, err
		}
	}
	if r.maxBytes > 0 && len(body) > r.maxBytes {
		value, body = nil, nil
	}
	if body == nil && before.version == 0 {
		return after, 0, nil
	}
	after = record[T]{value, before.version}
	if r.cache != nil {
		r.cache.Put(id, after, 1) // known here, even if the store fails
	}
	after.version, err = r.documents.Put(ctx, store.Document{Kind: r.kind, ID: id, Version: before.version, Body: body})
	if r.cache != nil && errors.Is(err, store.ErrConflict) {
		r.cache.Delete(id)
	} else if r.cache != nil && err == nil {
		r.cache.Put(id, after, 1)
	}
	return after, len(body), err
}

// change replaces a value by what next makes of it, nil for none. It tries again if another writer was
// faster.
func (r records[T]) change(ctx context.Context, id string, next func(now *T) *T) (after record[T], size int, err error) {
	for n := 1; ; n++ {
		before, err := r.get(ctx, id)
		if err != nil {
			return before, 0, err
		}
		value := next(before.value)
		if value == before.value {
			return before, 0, nil
		}
		after, size, err = r.put(ctx, id, before, value)
		if n == maxTries || !errors.Is(err, store.ErrConflict) {
			return after, size, err
		}
	}
}

// recordsPage is how many documents are read at a time: each may be half a megabyte.
const recordsPage = 50

// each calls f for every record, with its size in bytes. The value of one that cannot be read is nil.
func (r records[T]) each(ctx context.Context, f func(id string, found record[T], size int) error) error {
	for after := ""; ; {
		page, err := r.documents.Documents(ctx, r.kind, after, recordsPage)
		if err != nil {
			return err
		}
		for _, d := range page {
			found := record[T]{version: d.Version}
			if json.Unmarshal(d.Body, &found.value) != nil {
				found.value = nil
			}
			if err := f(d.ID, found, len(d.Body)); err != nil {
				return err
			}
			after = d.ID
		}
		if len(page) < recordsPage {
			return nil
		}
	}
}
