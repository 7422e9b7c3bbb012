package keyring

import (
	"bytes"
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"sync"
	"time"
)

// dataKey is a data key as it is used.
type dataKey struct {
	wrapped Wrapped
	key     []byte
	aead    cipher.AEAD
	err     error  // why it cannot be used; nil when it can
	left    uint64 // messages that are reserved and not sealed
}

// holder holds the unwrapped keys of one tenant. Its lock is held while Keys is
// asked, so that many who need the same keys ask once.
type holder struct {
	tenant string

	mu     sync.Mutex
	loaded time.Time // zero: must be loaded
	keys   []*dataKey
	block  uint64 // how many messages to reserve next
}

// Blocks of messages that are reserved: small at first, because what a short
// process reserves and does not use is lost, then larger, because each block is a
// write to Keys. A key allows four million first blocks.
const (
	firstBlock = 1 << 10
	maxBlock   = 1 << 20
)

// attempts bounds how often a change of Keys is tried when others are faster.
const attempts = 100

// holder returns that of a tenant.
func (r *Keyring) holder(tenant string) *holder {
	return r.held.Of(tenant, 1, func() *holder { return &holder{tenant: tenant, block: firstBlock} })
}

// load makes the keys of a holder, whose lock is held, those of Keys.
func (r *Keyring) load(ctx context.Context, h *holder) error {
	h.loaded = time.Time{}
	now := r.now()
	wrapped, err := r.keys.Load(ctx, h.tenant)
	if err != nil {
		h.keys = nil
		return err
	}
	keys := make([]*dataKey, len(wrapped))
	for i, w := range wrapped {
		if w.Version != i+1 || w.Tenant != h.tenant {
			return fmt.Errorf("data key %d of tenant %q is in the place of %d: %w", w.Version, w.Tenant, i+1, ErrOpen)
		}
		if i < len(h.keys) && h.keys[i].err == nil && bytes.Equal(h.keys[i].wrapped.Sealed, w.Sealed) {
			keys[i] = h.keys[i]
			keys[i].wrapped = w
			continue
		}
		keys[i] = r.unwrap(w)
		if i < len(h.keys) {
			keys[i].left = h.keys[i].left
		}
	}
	h.keys, h.loaded = keys, now
	return nil
}

func (r *Keyring) unwrap(w Wrapped) *dataKey {
	key, err := r.masters.unwrap(w)
	if err != nil {
		return &dataKey{wrapped: w, err: err}
	}
	return &dataKey{wrapped: w, key: key, aead: newAEAD(derive(key, "seal"))}
}

// refresh loads the keys if they are not fresh.
func (r *Keyring) refresh(ctx context.Context, h *holder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if age := r.now().Sub(h.loaded); !h.loaded.IsZero() && age >= 0 && age < r.fresh {
		return nil
	}
	return r.load(ctx, h)
}

// find returns one key of a tenant. The error wraps ErrOpen when there is none of
// the number.
func (r *Keyring) find(ctx context.Context, tenant string, version int) (dataKey, error) {
	h := r.holder(tenant)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := r.refresh(ctx, h); err != nil {
		return dataKey{}, err
	}
	if version > len(h.keys) { // perhaps another process has made it
		if err := r.load(ctx, h); err != nil {
			return dataKey{}, err
		}
	}
	if version > len(h.keys) {
		return dataKey{}, fmt.Errorf("there is no data key %d: %w", version, ErrOpen)
	}
	k := h.keys[version-1]
	return *k, k.err
}

// take returns the newest key of a tenant for one message, and counts it.
func (r *Keyring) take(ctx context.Context, tenant string) (dataKey, error) {
	h := r.holder(tenant)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := r.refresh(ctx, h); err != nil {
		return dataKey{}, err
	}
	for range attempts {
		if n := len(h.keys); n > 0 {
			k := h.keys[n-1]
			if k.err != nil {
				return dataKey{}, k.err
			}
			if k.left > 0 {
				k.left--
				return *k, nil
			}
		}
		if err := r.reserve(ctx, h); err != nil {
			return dataKey{}, err
		}
	}
	return dataKey{}, ErrConflict
}

// reserve gets a block of messages for the newest key, or makes the next key
// when there is none or it has reached its limit. When somebody else was faster
// it only loads what there is.
func (r *Keyring) reserve(ctx context.Context, h *holder) error {
	n := len(h.keys)
	if n == 0 || h.keys[n-1].wrapped.Used >= r.limit {
		return r.add(ctx, h)
	}
	k := h.keys[n-1]
	w := k.wrapped
	block := min(h.block, r.limit-w.Used)
	w.Revision++
	w.Used += block
	switch err := r.keys.Put(ctx, w); {
	case errors.Is(err, ErrConflict):
		return r.load(ctx, h)
	case err != nil:
		return err
	}
	k.wrapped, k.left = w, block
	h.block = min(2*h.block, maxBlock)
	return nil
}

// add makes the next key of a tenant, with its first block of messages.
func (r *Keyring) add(ctx context.Context, h *holder) error {
	w := Wrapped{
		Tenant: h.tenant, Version: len(h.keys) + 1, Revision: 1,
		Used: min(firstBlock, r.limit), Created: r.now().UTC().Truncate(time.Second),
	}
	w = r.masters.wrap(w, randomBytes(keyBytes))
	switch err := r.keys.Put(ctx, w); {
	case errors.Is(err, ErrConflict):
		return r.load(ctx, h)
	case err != nil:
		return err
	}
	k := r.unwrap(w)
	k.left = w.Used
	h.keys, h.block = append(h.keys, k), 2*firstBlock
	return k.err
}
