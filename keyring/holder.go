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

// holder holds the unwrapped keys of one tenant.
type holder struct {
	tenant string

	// changing is held while Keys is written to, so that of many who need a change
	// one makes it. Who opens never waits for it: Keys may be a table of the
	// database whose contents are opened, where a writer waits for transactions and
	// these open.
	changing sync.Mutex

	// mu is held while Keys is read, so that many who need the same keys ask once.
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
	return r.held.GetOrCreate(tenant, 1, func() *holder { return &holder{tenant: tenant, block: firstBlock} })
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

// share is a number of messages that may be sealed with a key.
type share struct {
	dataKey
	n uint64
}

// take returns the newest keys of a tenant for n messages together, and counts
// them.
func (r *Keyring) take(ctx context.Context, tenant string, n uint64) (shares []share, err error) {
	h := r.holder(tenant)
	for try := 0; try < attempts; try++ {
		got, err := r.reserved(ctx, h, n)
		if err != nil {
			return nil, err
		}
		if got.n > 0 {
			shares, n, try = append(shares, got), n-got.n, 0
		}
		if n == 0 {
			return shares, nil
		}
		if err := r.reserve(ctx, h, n); err != nil {
			return nil, err
		}
	}
	return nil, ErrConflict
}

// reserved takes what is reserved of the newest key, at most n.
func (r *Keyring) reserved(ctx context.Context, h *holder, n uint64) (share, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := r.refresh(ctx, h); err != nil {
		return share{}, err
	}
	if len(h.keys) == 0 {
		return share{}, nil
	}
	k := h.keys[len(h.keys)-1]
	if k.err != nil {
		return share{}, k.err
	}
	got := min(k.left, n)
	k.left -= got
	return share{*k, got}, nil
}

// reserve gets a block of messages for the newest key, of n or more where the key
// allows so many, or makes the next key when there is none or it has reached its
// limit. When somebody else was faster it only loads what there is.
func (r *Keyring) reserve(ctx context.Context, h *holder, n uint64) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	h.mu.Lock()
	if len(h.keys) == 0 || h.keys[len(h.keys)-1].wrapped.Used >= r.limit {
		h.mu.Unlock()
		return r.add(ctx, h, n)
	}
	newest := *h.keys[len(h.keys)-1]
	w := newest.wrapped
	block := min(max(h.block, n), r.limit-w.Used)
	h.block = min(2*h.block, maxBlock)
	h.mu.Unlock()
	if newest.left > 0 {
		return nil // somebody has reserved meanwhile
	}
	w.Revision++
	w.Used += block
	return r.put(ctx, h, w, block)
}

// add makes the next key of a tenant, with its first block of messages. The
// caller holds the lock for changes.
func (r *Keyring) add(ctx context.Context, h *holder, n uint64) error {
	h.mu.Lock()
	version := len(h.keys) + 1
	h.block = 2 * firstBlock
	h.mu.Unlock()
	w := Wrapped{
		Tenant: h.tenant, Version: version, Revision: 1,
		Used: min(max(firstBlock, n), r.limit), Created: r.now().UTC().Truncate(time.Second),
	}
	return r.put(ctx, h, r.masters.wrap(w, randomBytes(keyBytes)), w.Used)
}

// put writes a key to Keys, with a block of messages for this process, or loads
// what is there when somebody else was faster.
func (r *Keyring) put(ctx context.Context, h *holder, w Wrapped, block uint64) error {
	err := r.keys.Put(ctx, w)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, ErrConflict):
		return r.load(ctx, h)
	case err != nil:
		return err
	case len(h.keys) == w.Version-1:
		h.keys = append(h.keys, r.unwrap(w))
	case len(h.keys) < w.Version:
		return nil // forgotten meanwhile, and the block with it
	}
	// Others may have loaded the keys meanwhile, this one or a later revision.
	k := h.keys[w.Version-1]
	if k.wrapped.Revision < w.Revision {
		k.wrapped = w
	}
	k.left += block
	return k.err
}
