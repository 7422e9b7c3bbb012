// Package keyringtest tests implementations of keyring.Keys, and a keyring.Keyring over
// them.
package keyringtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// TestKeys runs the suite. open returns new, empty Keys, and closes them with Cleanup.
func TestKeys(t *testing.T, open func(testing.TB) keyring.Keys) {
	t.Run("records", func(t *testing.T) { records(t, open(t)) })
	t.Run("tenants", func(t *testing.T) { tenants(t, open(t)) })
	t.Run("erase", func(t *testing.T) { erase(t, open(t)) })
	t.Run("cancelled", func(t *testing.T) { cancelled(t, open(t)) })
	t.Run("concurrent", func(t *testing.T) { concurrent(t, open(t)) })
	t.Run("erased meanwhile", func(t *testing.T) { erasedMeanwhile(t, open(t)) })
	t.Run("keyring", func(t *testing.T) { ring(t, open(t)) })
}

var began = time.Date(2025, 5, 12, 9, 30, 0, 0, time.UTC)

func wrapped(tenant string, version, revision int) keyring.Wrapped {
	return keyring.Wrapped{
		Tenant: tenant, Version: version, Revision: revision, Master: fmt.Sprint("mk-", revision),
		Sealed: []byte{0, byte(version), byte(revision), 0xff}, Used: 1 << 32, Created: began,
	}
}

func put(t *testing.T, k keyring.Keys, w keyring.Wrapped) {
	t.Helper()
	if err := k.Put(t.Context(), w); err != nil {
		t.Fatalf("version %d, revision %d of %q: %v", w.Version, w.Revision, w.Tenant, err)
	}
}

func want(t *testing.T, k keyring.Keys, tenant string, want ...keyring.Wrapped) {
	t.Helper()
	got, err := k.Load(t.Context(), tenant)
	if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("tenant %q has %+v, %v, want %+v", tenant, got, err, want)
	}
}

// records: versions in order, each replaced by its next revision only.
func records(t *testing.T, k keyring.Keys) {
	want(t, k, "t")
	put(t, k, wrapped("t", 1, 1))
	put(t, k, wrapped("t", 1, 2))
	put(t, k, wrapped("t", 2, 1))
	for version := 3; version <= 11; version++ { // eleven comes behind ten, not behind one
		put(t, k, wrapped("t", version, 1))
	}
	put(t, k, wrapped("t", 1, 3))
	for _, w := range []keyring.Wrapped{
		wrapped("t", 1, 1), wrapped("t", 1, 3), wrapped("t", 1, 5), wrapped("t", 2, 1), wrapped("t", 2, 3), wrapped("t", 13, 1),
		wrapped("t", 12, 2), wrapped("t", 0, 1), wrapped("t", -1, 1), wrapped("t", 12, 0), wrapped("new", 2, 1), wrapped("new", 1, 2),
	} {
		w.Sealed = []byte("other")
		if err := k.Put(t.Context(), w); !errors.Is(err, keyring.ErrConflict) {
			t.Errorf("version %d, revision %d of %q: %v", w.Version, w.Revision, w.Tenant, err)
		}
	}
	all := []keyring.Wrapped{wrapped("t", 1, 3)}
	for version := 2; version <= 11; version++ {
		all = append(all, wrapped("t", version, 1))
	}
	want(t, k, "t", all...)
	want(t, k, "new")
}

// tenants: each has keys of its own, whatever its name.
func tenants(t *testing.T, k keyring.Keys) {
	names := []string{"", "a", "A", "a/b", "..", "../a", ".", "a%2Fb", "erased.json", "1.1.json", strings.Repeat("long", 100), strings.Repeat("long", 101), "テナント"}
	for n, tenant := range names {
		w := wrapped(tenant, 1, 1)
		w.Used = uint64(n)
		put(t, k, w)
	}
	for n, tenant := range names {
		w := wrapped(tenant, 1, 1)
		w.Used = uint64(n)
		want(t, k, tenant, w)
	}
	slices.Sort(names)
	if got := list(t, k); !slices.Equal(got, names) {
		t.Errorf("tenants %q, want %q", got, names)
	}
	for range k.Tenants(t.Context()) {
		break // a listing must stop when its reader does
	}
}

func list(t *testing.T, k keyring.Keys) []string {
	t.Helper()
	var all []string
	for tenant, err := range k.Tenants(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tenant)
	}
	return all
}

// erase: for good, and of one tenant only.
func erase(t *testing.T, k keyring.Keys) {
	ctx := t.Context()
	put(t, k, wrapped("gone", 1, 1))
	put(t, k, wrapped("gone", 2, 1))
	put(t, k, wrapped("stays", 1, 1))
	for _, tenant := range []string{"gone", "gone", "never there"} {
		if err := k.Erase(ctx, tenant); err != nil {
			t.Fatal(err)
		}
		if keys, err := k.Load(ctx, tenant); !errors.Is(err, keyring.ErrErased) || len(keys) != 0 {
			t.Errorf("%s: %v, %v", tenant, keys, err)
		}
		for _, w := range []keyring.Wrapped{wrapped(tenant, 1, 1), wrapped(tenant, 1, 2), wrapped(tenant, 3, 1)} {
			if err := k.Put(ctx, w); !errors.Is(err, keyring.ErrErased) {
				t.Errorf("%s has keys again: %v", tenant, err)
			}
		}
	}
	want(t, k, "stays", wrapped("stays", 1, 1))
	if got := list(t, k); !slices.Equal(got, []string{"stays"}) {
		t.Errorf("tenants %q", got)
	}
}

func cancelled(t *testing.T, k keyring.Keys) {
	put(t, k, wrapped("t", 1, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := k.Load(ctx, "t")
	for n, err := range []error{err, k.Put(ctx, wrapped("t", 1, 2)), k.Erase(ctx, "t")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", n, err)
		}
	}
	for tenant, err := range k.Tenants(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Tenants: %q, %v", tenant, err)
		}
	}
	want(t, k, "t", wrapped("t", 1, 1))
}

// concurrent: of several writers of one revision exactly one wins, and none is
// lost: writers that each add to Used until they have had their turn.
func concurrent(t *testing.T, k keyring.Keys) {
	first := wrapped("t", 1, 1)
	first.Used = 0
	put(t, k, first)
	const writers, turns = 6, 8
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < turns; {
				held, err := k.Load(t.Context(), "t")
				if err != nil || len(held) != 1 {
					t.Errorf("%+v, %v", held, err)
					return
				}
				w := held[0]
				w.Revision++
				w.Used++
				switch err := k.Put(t.Context(), w); {
				case err == nil:
					done++
				case !errors.Is(err, keyring.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	held, err := k.Load(t.Context(), "t")
	if err != nil || len(held) != 1 || held[0].Used != writers*turns || held[0].Revision != 1+writers*turns {
		t.Errorf("%+v, %v after %d turns", held, err, writers*turns)
	}
}

// erasedMeanwhile: nothing that is written at the same time comes back.
func erasedMeanwhile(t *testing.T, k keyring.Keys) {
	put(t, k, wrapped("t", 1, 1))
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := 2; ; i++ {
				w := wrapped("t", 1, i)
				if n%2 == 0 {
					w = wrapped("t", i, 1)
				}
				err := k.Put(t.Context(), w)
				if errors.Is(err, keyring.ErrErased) {
					return
				}
				if errors.Is(err, keyring.ErrConflict) {
					i-- // somebody else was faster, or is not as far
					held, err := k.Load(t.Context(), "t")
					if errors.Is(err, keyring.ErrErased) {
						return
					}
					if n%2 == 0 {
						i = len(held)
					} else if len(held) > 0 {
						i = held[0].Revision
					}
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	if err := k.Erase(t.Context(), "t"); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if keys, err := k.Load(t.Context(), "t"); !errors.Is(err, keyring.ErrErased) {
		t.Errorf("%v, %v", keys, err)
	}
}

// ring: a keyring.Keyring over these Keys, as several processes use it. A20
func ring(t *testing.T, k keyring.Keys) {
	ctx := t.Context()
	old, fresh := keyring.NewMaster(), keyring.NewMaster()
	masters := func(text string) keyring.Masters {
		ms, err := keyring.ParseMasters(text)
		if err != nil {
			t.Fatal(err)
		}
		return ms
	}
	one, two := keyring.New(masters(old), k, nil), keyring.New(masters(old+"\n"+fresh), k, nil)
	sealed, id, err := one.Seal(ctx, "t", []byte("note/1"), []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	opens := func(r *keyring.Keyring, name string) {
		t.Helper()
		if text, err := r.Open(ctx, "t", []byte("note/1"), sealed); err != nil || string(text) != "secret" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	opens(two, "another process")
	if next, err := two.Rotate(ctx, "t"); err != nil || next == id {
		t.Errorf("rotated to %s, %v", next, err)
	}
	opens(one, "after rotating")
	if stale, err := two.Stale(ctx, "t", sealed); err != nil || !stale {
		t.Errorf("stale: %v, %v", stale, err)
	}
	if n, err := two.RotateMaster(ctx); n != 1 || err != nil { // the second key is wrapped by the new one already
		t.Errorf("wrapped %d anew, %v", n, err)
	}
	opens(keyring.New(masters(fresh), k, nil), "with the new master key alone")
	if _, err := keyring.New(masters(old), k, nil).Open(ctx, "t", []byte("note/1"), sealed); !errors.Is(err, keyring.ErrNoMaster) {
		t.Errorf("with the old master key alone: %v", err)
	}
	if err := two.Erase(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*keyring.Keyring{two, keyring.New(masters(old+" "+fresh), k, nil)} {
		if _, err := r.Open(ctx, "t", []byte("note/1"), sealed); !errors.Is(err, keyring.ErrErased) {
			t.Errorf("after Erase: %v", err)
		}
		if _, _, err := r.Seal(ctx, "t", nil, nil); !errors.Is(err, keyring.ErrErased) {
			t.Errorf("sealing after Erase: %v", err)
		}
	}
}
