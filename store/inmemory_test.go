package store_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

// TestMemory: the whole of it is proved with store/mem; this is what a part of a
// store has to do.
func TestMemory(t *testing.T) {
	storetest.TestTenant(t, func(testing.TB) store.Tenant {
		m := &store.Memory{}
		return store.Tenant{Log: m, Plans: m, Catalog: m, Events: m, Documents: m, Answers: mem.New().Tenant("").Answers}
	})
}
