package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/store"
)

// Forget removes what the documents hold of a conversation under other ids than its log's: the
// responses that continue it, and its first message. Call it before deleting the log; the store
// removes documents under the log's own id by itself. Forgetting twice does no harm. The error is
// that of the documents.
func Forget(ctx context.Context, documents store.Documents, log string) error {
	err := forgetResponses(ctx, responsesIn(documents), log)
	if err == nil {
		err = forgetBeginning(ctx, beginningsIn(documents), log)
	}
	if err != nil {
		return fmt.Errorf("proxy.Forget(%s): %w", log, err)
	}
	return nil
}

func forgetResponses(ctx context.Context, responses records[storedResponse], log string) error {
	all := map[string]record[storedResponse]{}
	err := responses.each(ctx, func(id string, found record[storedResponse], _ int) error {
		k := storedResponse{}
		if found.value != nil { // nil: it cannot be read
			k.Log, k.Previous = found.value.Log, found.value.Previous
		}
		all[id] = record[storedResponse]{&k, found.version}
		return nil
	})
	if err != nil {
		return err
	}
	// leads reports whether the log is behind a response, which may name only the one before it.
	leads := func(id string) bool {
		for range maxChain {
			k, known := all[id]
			if !known || k.value.Log != "" {
				return known && k.value.Log == log
			}
			id = k.value.Previous
		}
		return false
	}
	for id, k := range all {
		if !leads(id) {
			continue
		}
		if _, _, err := responses.put(ctx, id, k, nil); unlessConflict(err) != nil {
			return fmt.Errorf("response %s: %w", id, err)
		}
	}
	return nil
}

// forgetBeginning takes a conversation out of the lists by first message.
func forgetBeginning(ctx context.Context, beginnings records[[]string], log string) error {
	return beginnings.each(ctx, func(id string, found record[[]string], _ int) error {
		if found.value == nil || !slices.Contains(*found.value, log) {
			return nil
		}
		left := append([]string{}, slices.DeleteFunc(*found.value, func(base string) bool { return base == log })...)
		_, _, err := beginnings.put(ctx, id, found, &left)
		return unlessConflict(err)
	})
}
