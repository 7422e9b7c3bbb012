package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

// TestProbe: a probe writes, and finds what may not be written: in the clear beside
// what is encrypted, under another master key, without the right.
func TestProbe(t *testing.T) {
	t.Parallel()
	ctx, address := t.Context(), pgtest.Database(t)
	masters := func() keyring.Masters {
		m, err := keyring.ParseMasters(keyring.NewMaster())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	plain := open(t, address, nil)
	if err := plain.Probe(ctx); err != nil {
		t.Fatal(err)
	}
	right := masters()
	if _, err := open(t, address, &postgres.Options{Masters: right}).Tenant("a").Log.Append(ctx, "t", 0, user("one")); err != nil {
		t.Fatal(err)
	}
	if err := plain.Probe(ctx); !errors.Is(err, store.ErrSealed) {
		t.Errorf("without the key: %v", err)
	}
	if _, err := plain.Tenant("b").Log.Append(ctx, "t", 0, user("one")); !errors.Is(err, store.ErrSealed) {
		t.Errorf("a write without the key: %v", err)
	}
	if err := open(t, address, &postgres.Options{Masters: masters()}).Probe(ctx); !errors.Is(err, keyring.ErrNoMaster) {
		t.Errorf("with another key: %v", err)
	}
	if err := open(t, address, &postgres.Options{Masters: right}).Probe(ctx); err != nil {
		t.Errorf("with the key: %v", err)
	}
	locked := address + "&default_transaction_read_only=on"
	if !strings.Contains(address, "?") {
		locked = address + "?default_transaction_read_only=on"
	}
	if err := open(t, locked, &postgres.Options{Masters: right}).Probe(ctx); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("without the right: %v", err)
	}
}

// TestQuota: see storetest.
func TestQuota(t *testing.T) {
	t.Parallel()
	storetest.TestQuota(t, open(t, pgtest.Database(t), &postgres.Options{TenantBytes: 10_000}))
}
