package mem_test

import (
	"errors"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
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

// TestNoKeysInMemory: a key of what ends with the process is refused, and none opens it.
func TestNoKeysInMemory(t *testing.T) {
	keys := apikey.New(mem.New().APIKeys(), nil)
	if token, _, err := keys.Add(t.Context(), apikey.Grant{Rights: apikey.Read}); err == nil || token != "" {
		t.Errorf("made %q", token)
	}
	kept := apikey.New(&apikeytest.Memory{}, nil)
	token, key, err := kept.Add(t.Context(), apikey.Grant{Rights: apikey.Read})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Check(t.Context(), token); !errors.Is(err, apikey.ErrUnauthorized) {
		t.Errorf("a key of another store: %v", err)
	}
	if err := keys.Revoke(t.Context(), key.ID); !errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("revoked: %v", err)
	}
	for k, err := range keys.List(t.Context()) {
		t.Errorf("listed %v, %v", k, err)
	}
}
