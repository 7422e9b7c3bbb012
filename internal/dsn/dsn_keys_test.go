package dsn_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// engines are places for a new store. The server is reached over few connections.
func engines(t *testing.T, each func(t *testing.T, name string)) {
	t.Run("sqlite", func(t *testing.T) { each(t, filepath.Join(t.TempDir(), "p.db")) })
	t.Run("postgres", func(t *testing.T) {
		u, err := url.Parse(pgtest.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("pool_max_conns", "2")
		u.RawQuery = q.Encode()
		each(t, u.String())
	})
}

// sealed opens a store with master keys and returns its artifacts and keyring.
func sealed(t *testing.T, name string, masters keyring.Masters) (store.DB, *artifact.Store, *keyring.Keyring) {
	t.Helper()
	db, err := dsn.Open(t.Context(), name, &dsn.Options{Masters: masters, CacheBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	ring := db.(store.Keyed).Keyring()
	return db, artifact.NewStore(db.Artifacts(), &artifact.Options{Keyring: ring, KeyedIDs: true}), ring
}

func parsed(t *testing.T, text string) keyring.Masters {
	t.Helper()
	masters, err := keyring.ParseMasters(text)
	if err != nil {
		t.Fatal(err)
	}
	return masters
}

// TestOwnKeys: a store that keeps its own data keys is read by whoever has the
// master key, after each change of keys, and by nobody after an Erase. A20
func TestOwnKeys(t *testing.T) {
	engines(t, func(t *testing.T, name string) {
		ctx := t.Context()
		first, second := keyring.NewMaster(), keyring.NewMaster()
		db, artifacts, ring := sealed(t, name, parsed(t, first))
		storetest.Fill(t, db, "acme", "said by acme")
		storetest.Fill(t, db, "b", "said by b")
		id, err := artifacts.Put(ctx, artifact.Metadata{TenantID: "acme", ThreadID: "t"}, "externalized")
		if err != nil {
			t.Fatal(err)
		}
		reads := func(when, masters string) {
			t.Helper()
			db, artifacts, _ := sealed(t, name, parsed(t, masters))
			o := artifacts
			counts, err := care.Check(ctx, db, func(p care.Problem) { t.Errorf("%s: %s", when, p) }, o)
			if err != nil || counts.Threads != 2 || counts.Artifacts != 1 {
				t.Errorf("%s: %+v, %v", when, counts, err)
			}
		}
		reads("at first", first)
		if plain, err := dsn.Open(ctx, name, nil); err != nil {
			t.Error(err)
		} else {
			if _, err := plain.Tenant("acme").Log.Load(ctx, "t"); !errors.Is(err, store.ErrSealed) || plain.(store.Keyed).Keyring() != nil {
				t.Errorf("without the master key: %v", err)
			}
			plain.Close()
		}
		if _, err := ring.Rotate(ctx, "acme"); err != nil {
			t.Fatal(err)
		}
		if done, err := care.Reseal(ctx, db, artifacts); err != nil || done.Records == 0 || done.Artifacts != 1 || done.Tenants != 2 {
			t.Errorf("%+v, %v", done, err)
		}
		reads("sealed anew", first)
		_, _, both := sealed(t, name, parsed(t, first+"\n"+second))
		if n, err := both.RotateMaster(ctx); n != 3 || err != nil {
			t.Errorf("%d wrapped anew, %v", n, err)
		}
		reads("with the new master key alone", second)
		later, _, _ := sealed(t, name, parsed(t, first))
		if _, err := later.Tenant("acme").Log.Load(ctx, "t"); !errors.Is(err, keyring.ErrNoMaster) {
			t.Errorf("with the old master key: %v", err)
		}
		last, artifacts, ring := sealed(t, name, parsed(t, second))
		if err := ring.Erase(ctx, "acme"); err != nil {
			t.Fatal(err)
		}
		if _, err := last.Tenant("acme").Log.Load(ctx, "t"); !errors.Is(err, store.ErrErased) {
			t.Errorf("erased: %v", err)
		}
		if _, _, err := artifacts.Get(ctx, artifact.Requester{TenantID: "acme"}, id); !errors.Is(err, keyring.ErrErased) {
			t.Errorf("erased: %v", err)
		}
		if done, err := care.Reseal(ctx, last, artifacts); err != nil || done.Erased != 1 || done.Tenants != 1 {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// TestNobodyWaitsForKeys: two processes do everything at once, over few connections
// and through several blocks of reserved messages, and come to their end: also where
// a transaction meets a key that the other process has made.
func TestNobodyWaitsForKeys(t *testing.T) {
	engines(t, func(t *testing.T, name string) {
		ctx, masters := t.Context(), parsed(t, keyring.NewMaster())
		var wg sync.WaitGroup
		for range 2 {
			db, artifacts, ring := sealed(t, name, masters)
			for n := range 3 {
				id := fmt.Sprintf("%p %d", db, n)
				wg.Go(func() {
					for i := range 4 {
						if err := round(ctx, db, artifacts, ring, fmt.Sprint("tenant ", n%2), id, i); err != nil {
							t.Errorf("%s, round %d: %v", id, i, err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		db, artifacts, _ := sealed(t, name, masters)
		counts, err := care.Check(ctx, db, func(p care.Problem) { t.Error(p) }, artifacts)
		if err != nil || counts.Messages != 6*4*150 || counts.Artifacts != 6*4 {
			t.Errorf("%+v, %v", counts, err)
		}
	})
}

func round(ctx context.Context, db store.DB, artifacts *artifact.Store, ring *keyring.Keyring, tenant, id string, i int) error {
	var messages []thread.Message
	for n := range 150 {
		messages = append(messages, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprint(id, i, n)}}})
	}
	_, err := db.Tenant(tenant).Log.Append(ctx, id, 150*i, messages)
	_, putErr := artifacts.Put(ctx, artifact.Metadata{TenantID: tenant, ThreadID: id}, fmt.Sprint(id, i))
	_, documentErr := db.Tenant(tenant).Documents.Put(ctx, store.Document{Kind: "round", ID: id, Version: i, Body: fmt.Append(nil, i)})
	if i%3 == 1 {
		_, rotateErr := ring.Rotate(ctx, tenant)
		_, resealErr := db.(store.Sealed).Reseal(ctx, tenant)
		err = errors.Join(err, rotateErr, resealErr)
	}
	return errors.Join(err, putErr, documentErr)
}
