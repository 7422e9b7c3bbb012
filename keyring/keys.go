package keyring

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

var (
	// ErrOpen says that sealed text does not open: it was sealed for another
	// tenant or record, or is damaged, or is no sealed text.
	ErrOpen = errors.New("sealed text does not open: it is damaged, or not of this tenant and record")
	// ErrErased says that the tenant's keys were erased, with everything that
	// was sealed for it. It is final: the name cannot be used again.
	ErrErased = errors.New("the tenant's keys were erased")
	// ErrNoMaster says that the master key of a data key is not among those
	// given.
	ErrNoMaster = errors.New("master key is missing; give the old one too, before the new one")
	// ErrConflict says that another writer of Keys was faster. Seal and Rotate
	// try again by themselves.
	ErrConflict = errors.New("somebody else has changed the tenant's keys")
)

// Wrapped is a data key as it is kept: encrypted by a master key.
type Wrapped struct {
	Tenant string
	// Version is the number of the tenant's key, from 1.
	Version int
	// Revision counts the changes of this record, from 1.
	Revision int
	// Master is the id of the master key that wraps.
	Master string
	// Sealed is nonce, encrypted data key and tag.
	Sealed []byte
	// Used is how many messages may have been sealed with the key: those that
	// were reserved by all who use it.
	Used    uint64
	Created time.Time
}

// Follows reports whether Put may keep w where these are the keys of its tenant. It
// is for implementations of Keys; the error is ErrConflict.
func (w Wrapped) Follows(held []Wrapped) error {
	i := w.Version - 1
	first := w.Revision == 1 && i == len(held)
	if next := i >= 0 && i < len(held) && w.Revision == held[i].Revision+1; !first && !next {
		return ErrConflict
	}
	return nil
}

// Keys keeps wrapped data keys. Implementations are safe for concurrent use;
// package keyringtest proves one. Memory is here.
type Keys interface {
	// Load returns the keys of a tenant, version 1 first; none when it has none
	// yet. The error wraps ErrErased after Erase.
	Load(ctx context.Context, tenant string) ([]Wrapped, error)
	// Put keeps w in place of the revision before: the one that is there must be
	// w.Revision-1, where 0 stands for none. A first revision must also have the
	// version behind the tenant's newest. Otherwise nothing changes and the error
	// wraps ErrConflict, or ErrErased. What Put has kept survives a crash.
	Put(ctx context.Context, w Wrapped) error
	// Erase deletes the keys of a tenant for good, and remembers that it did.
	// Erasing again, or what was never there, is no error.
	Erase(ctx context.Context, tenant string) error
	// Tenants yields the tenants that have keys, ordered, without erased ones.
	// A tenant that cannot be read comes as an error in its place, and the
	// listing goes on.
	Tenants(ctx context.Context) iter.Seq2[string, error]
}

// Settler is what Keys can do besides that do not write over what they replace:
// take it out of their files. RotateMaster calls it in the end, so that an older
// master key opens nothing there.
type Settler interface {
	Settle(ctx context.Context) error
}

// wrap encrypts a data key under the newest master key.
func (ms Masters) wrap(w Wrapped, key []byte) Wrapped {
	m := ms.newest()
	nonce := randomBytes(nonceBytes)
	w.Master, w.Sealed = m.id, m.aead.Seal(nonce, nonce, key, wrapAAD(w))
	return w
}

// unwrap gives the data key back.
func (ms Masters) unwrap(w Wrapped) ([]byte, error) {
	m, err := ms.byID(w.Master)
	if err != nil {
		return nil, fmt.Errorf("data key %d of tenant %q: %w", w.Version, w.Tenant, err)
	}
	if len(w.Sealed) < nonceBytes {
		return nil, fmt.Errorf("data key %d of tenant %q: %w", w.Version, w.Tenant, ErrOpen)
	}
	key, err := m.aead.Open(nil, w.Sealed[:nonceBytes], w.Sealed[nonceBytes:], wrapAAD(w))
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("data key %d of tenant %q: %w", w.Version, w.Tenant, ErrOpen)
	}
	return key, nil
}

// wrapAAD binds a wrapped key to its tenant and number.
func wrapAAD(w Wrapped) []byte {
	return fmt.Appendf(nil, "palimpsest data key\x00%d\x00%s", w.Version, w.Tenant)
}
