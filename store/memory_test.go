package store_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

func TestMemory(t *testing.T) {
	t.Run("log", func(t *testing.T) {
		storetest.TestLog(t, func(testing.TB) store.Log { return &store.Memory{} })
	})
	t.Run("plans", func(t *testing.T) {
		storetest.TestPlans(t, func(testing.TB) store.Plans { return &store.Memory{} })
	})
}
