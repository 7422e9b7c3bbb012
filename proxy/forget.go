package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/store"
)

// forgetPage is how many documents are read at a time: each may be half a megabyte.
const forgetPage = 50

// Forget removes what the documents hold of a conversation under other ids than
// the log's: the responses that go on with it, and that it begins with a message. It
// is for whoever deletes the log, and comes before that: a store forgets the documents
// of the log's own id by itself. Doing it twice is once; the error is that of the
// documents.
func Forget(ctx context.Context, documents store.Documents, log string) error {
	if err := forgetResponses(ctx, documents, log); err != nil {
		return fmt.Errorf("proxy.Forget(%s): %w", log, err)
	}
	if err := forgetBeginning(ctx, documents, log); err != nil {
		return fmt.Errorf("proxy.Forget(%s): %w", log, err)
	}
	return nil
}

// each calls f for every document of a kind.
func each(ctx context.Context, documents store.Documents, kind string, f func(store.Document) error) error {
	for after := ""; ; {
		page, err := documents.Documents(ctx, kind, after, forgetPage)
		if err != nil {
			return err
		}
		for _, d := range page {
			if err := f(d); err != nil {
				return err
			}
			after = d.ID
		}
		if len(page) < forgetPage {
			return nil
		}
	}
}

func forgetResponses(ctx context.Context, documents store.Documents, log string) error {
	type remembered struct {
		version int
		log     string
		prev    string
	}
	all := map[string]remembered{}
	err := each(ctx, documents, responseKind, func(d store.Document) error {
		var k response
		// One that cannot be read leads nowhere.
		_ = json.Unmarshal(d.Body, &k)
		all[d.ID] = remembered{d.Version, k.Log, k.Prev}
		return nil
	})
	if err != nil {
		return err
	}
	// leads says whose log stands behind a response that names only the one before.
	leads := func(id string) bool {
		for range maxHops {
			k, known := all[id]
			if !known || k.log != "" {
				return known && k.log == log
			}
			id = k.prev
		}
		return false
	}
	for id, k := range all {
		if !leads(id) {
			continue
		}
		_, err := documents.Put(ctx, store.Document{Kind: responseKind, ID: id, Version: k.version})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("response %s: %w", id, err)
		}
	}
	return nil
}

// forgetBeginning takes a conversation out of the lists of those that begin with a
// message.
func forgetBeginning(ctx context.Context, documents store.Documents, log string) error {
	return each(ctx, documents, beginningKind, func(d store.Document) error {
		var bases []string
		if json.Unmarshal(d.Body, &bases) != nil || !slices.Contains(bases, log) {
			return nil
		}
		left := append([]string{}, slices.DeleteFunc(bases, func(base string) bool { return base == log })...)
		body, err := json.Marshal(left)
		if err != nil {
			return err
		}
		_, err = documents.Put(ctx, store.Document{Kind: beginningKind, ID: d.ID, Version: d.Version, Body: body})
		if errors.Is(err, store.ErrConflict) {
			return nil
		}
		return err
	})
}
