package store_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

// TestMemory: the whole of it is proved with store/mem; this is what a part of a
// store has to do.
func TestMemory(t *testing.T) {
	storetest.TestLog(t, func(testing.TB) store.Log { return &store.Memory{} })
	storetest.TestPlans(t, func(testing.TB) store.Plans { return &store.Memory{} })
}
