package keyring_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

var errBusy = errors.New("the keys are busy")

// busy are Keys that can be told to answer nobody, and to wait before a change.
type busy struct {
	keyringtest.Memory
	off    bool
	before func()
}

func (b *busy) Load(ctx context.Context, tenant string) ([]keyring.Wrapped, error) {
	if b.off {
		return nil, errBusy
	}
	return b.Memory.Load(ctx, tenant)
}

func (b *busy) Put(ctx context.Context, w keyring.Wrapped) error {
	if b.off {
		return errBusy
	}
	if b.before != nil {
		b.before()
	}
	return b.Memory.Put(ctx, w)
}

// TestReserve: what was reserved is sealed without Keys, also over the end of a key,
// and no more than that; no key seals more than its limit.
func TestReserve(t *testing.T) {
	const limit = 40
	keys, ms := &busy{}, masters(t, keyring.NewMaster())
	uses := map[string]int{}
	for _, n := range []int{0, 1, 7, 39, 40, 41, 100, 3} {
		keys.off = false
		ring := keyring.New(ms, keys, &keyring.Options{MaxMessages: limit, Fresh: time.Nanosecond})
		seal, err := ring.Reserve(t.Context(), "t", n)
		if err != nil {
			t.Fatal(err)
		}
		keys.off = true
		var all [][]byte
		for range n {
			sealed, err := seal([]byte("a"), []byte("x"))
			if err != nil {
				t.Fatalf("of %d: %v", n, err)
			}
			all = append(all, sealed)
		}
		if sealed, err := seal([]byte("a"), []byte("x")); err == nil {
			t.Errorf("of %d one more was sealed: %x", n, sealed)
		}
		keys.off = false
		for _, sealed := range all {
			id, err := keyring.KeyID(sealed)
			if err != nil {
				t.Fatal(err)
			}
			if uses[id]++; uses[id] > limit {
				t.Errorf("%s sealed %d messages", id, uses[id])
			}
			if text, err := ring.Open(t.Context(), "t", []byte("a"), sealed); err != nil || string(text) != "x" {
				t.Fatal(text, err)
			}
		}
	}
	if err := keyring.New(ms, keys, nil).Erase(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.New(ms, keys, nil).Reserve(t.Context(), "t", 1); !errors.Is(err, keyring.ErrErased) {
		t.Errorf("of an erased tenant: %v", err)
	}
}

// TestOpensDuringChanges: who opens does not wait for who changes Keys, which may
// wait for a transaction in which somebody opens.
func TestOpensDuringChanges(t *testing.T) {
	keys := &busy{}
	ring := keyring.New(masters(t, keyring.NewMaster()), keys, nil)
	sealed, _, err := ring.Seal(t.Context(), "t", nil, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	keys.before = func() {
		if text, err := ring.Open(t.Context(), "t", nil, sealed); err != nil || string(text) != "x" {
			t.Errorf("%q, %v", text, err)
		}
		if stale, err := ring.Stale(t.Context(), "t", sealed); stale || err != nil {
			t.Errorf("%v, %v", stale, err)
		}
		opened++
	}
	if _, err := ring.Reserve(t.Context(), "t", 5_000); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Rotate(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if opened < 2 {
		t.Errorf("%d changes", opened)
	}
}
