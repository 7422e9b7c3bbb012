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

// dataKey is an unwrapped data key.
type dataKey struct {
	wrapped Wrapped
	key     []byte
	aead    cipher.AEAD
	err     error  // why it cannot be used, or nil
	left    uint64 // messages that are reserved and not yet sealed
}

// holder holds the unwrapped keys of one tenant.
type holder struct {
	tenant string

	// changing is held while Keys is written, so that of many goroutines that need a
	// change one makes it. Open never waits for it: Keys may be a table of the database
	// whose contents are opened, where a writer waits for transactions that call Open.
	changing sync.Mutex

	// mu is held while Keys is read, so that many goroutines read it once.
	mu     sync.Mutex
	loaded time.Time // zero: not loaded
	keys   []*dataKey
	block  uint64 // how many messages to reserve next
}

// The number of messages that are reserved at once: small at first, because a process that
// ends loses what it has not used, then larger, because each block is a write to Keys.
const (
	firstBlock = 1 << 10
	maxBlock   = 1 << 20
)

// attempts bounds how often a change of Keys is tried when other processes are faster.
const attempts = 100

// holder returns the holder of a tenant.
func (r *Keyring) holder(tenant string) *holder {
	return r.held.GetOrCreate(tenant, 1, func() *holder { return &holder{tenant: tenant, block: firstBlock} })
}

// load reads the keys of a holder, whose lock is held, from Keys.
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

// find returns one key of a tenant. The error wraps ErrOpen if it does not exist.
func (r *Keyring) find(ctx context.Context, tenant string, version int) (dataKey, error) {
	h := r.holder(tenant)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := r.refresh(ctx, h); err != nil {
		return dataKey{}, err
	}
	if version > len(h.keys) { // another process may have added it
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

// share is a key and a number of messages that may be sealed with it.
type share struct {
	dataKey
	n uint64
}

// take reserves n messages of a tenant's newest keys.
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

// reserved takes up to n messages from those that this process has reserved.
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

// reserve reserves a block of messages of the newest key: n or more, if the key has so many
// left. It adds the next key if there is none or the newest is used up. If another process
// was faster, it only loads the keys.
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
		return nil // another goroutine has just reserved a block
	}
	w.Revision++
	w.Used += block
	return r.put(ctx, h, w, block)
}

// add creates the next key of a tenant, with a first block of messages. The caller holds
// h.changing.
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

// put writes a key with a block of messages for this process, or loads the keys if another
// process was faster.
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
		return nil // the keys were forgotten, and the block with them
	}
	// Another goroutine may have loaded this revision or a later one.
	k := h.keys[w.Version-1]
	if k.wrapped.Revision < w.Revision {
		k.wrapped = w
	}
	k.left += block
	return k.err
}
