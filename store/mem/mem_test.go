package mem_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

func TestInMemory(t *testing.T) {
	storetest.Test(t, func(testing.TB) store.DB { return mem.New() })
}

// TestTenantsInMemory: no tenant is ever told of another. A20
func TestTenantsInMemory(t *testing.T) {
	db := mem.New()
	storetest.TestCanary(t, func(testing.TB, *keyring.Keyring) store.DB { return db }, 5_000)
}
