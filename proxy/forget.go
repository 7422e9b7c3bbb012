package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/store"
)

// forgetPage is how many responses are read at a time: each may be half a
// megabyte.
const forgetPage = 50

// Forget removes what the documents hold of a conversation under other ids than
// the log's: the responses that go on with it. It is for whoever deletes the log,
// and comes before that: a store forgets the documents of the log's own id by
// itself. Doing it twice is once; the error is that of the documents.
func Forget(ctx context.Context, documents store.Documents, log string) error {
	type remembered struct {
		version int
		log     string
		prev    string
	}
	all := map[string]remembered{}
	for after := ""; ; {
		page, err := documents.Documents(ctx, linkKind, after, forgetPage)
		if err != nil {
			return fmt.Errorf("proxy.Forget(%s): %w", log, err)
		}
		for _, d := range page {
			var k link
			// One that cannot be read leads nowhere.
			_ = json.Unmarshal(d.Body, &k)
			all[d.ID] = remembered{d.Version, k.Log, k.Prev}
			after = d.ID
		}
		if len(page) < forgetPage {
			break
		}
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
		_, err := documents.Put(ctx, store.Document{Kind: linkKind, ID: id, Version: k.version})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("proxy.Forget(%s): response %s: %w", log, id, err)
		}
	}
	return nil
}
