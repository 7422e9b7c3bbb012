package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/postgres/pgtest"
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

// TestTenantBytes: who keeps as much as he may writes no more, of any kind; another
// does.
func TestTenantBytes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := open(t, pgtest.Database(t), &postgres.Options{TenantBytes: 10_000})
	if _, err := db.Artifacts().Put(ctx, artifact.Metadata{ID: "art_0", TenantID: "a", Bytes: 20_000}, make([]byte, 20_000), nil); err != nil {
		t.Fatal(err)
	}
	_, put := db.Tenant("a").Documents.Put(ctx, store.Document{Kind: "k", ID: "d", Body: []byte(`1`)})
	_, appended := db.Tenant("a").Log.Append(ctx, "t", 0, user("one"))
	if !errors.Is(put, store.ErrQuota) || !errors.Is(appended, store.ErrQuota) {
		t.Errorf("%v, %v", put, appended)
	}
	// What is there may be replaced, as it is when it is encrypted anew.
	if _, err := db.Artifacts().Put(ctx, artifact.Metadata{ID: "art_0", TenantID: "a", Bytes: 20_000}, make([]byte, 20_000), nil); err != nil {
		t.Errorf("replaced: %v", err)
	}
	if _, err := db.Tenant("b").Log.Append(ctx, "t", 0, user("one")); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}
