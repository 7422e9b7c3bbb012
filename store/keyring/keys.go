package keyring

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

var (
	// ErrOpen says that sealed text cannot be decrypted: it belongs to another tenant or
	// record, is damaged, or is not sealed text.
	ErrOpen = errors.New("sealed text cannot be decrypted: it is damaged, or not of this tenant and record")
	// ErrErased says that the tenant's keys were erased. It is final: the name of the
	// tenant cannot be used again.
	ErrErased = errors.New("the tenant's keys were erased")
	// ErrNoMaster says that the master key of a data key was not given.
	ErrNoMaster = errors.New("master key is missing; give the old one too, before the new one")
	// ErrConflict says that another writer of Keys was faster. Seal and Rotate try again
	// by themselves.
	ErrConflict = errors.New("the tenant's keys were changed by another process")
)

// Wrapped is a stored data key, encrypted by a master key.
type Wrapped struct {
	Tenant string
	// Version is the number of the tenant's key, from 1.
	Version int
	// Revision counts the changes of this record, from 1.
	Revision int
	// Master is the id of the master key.
	Master string
	// Sealed is the nonce, the encrypted data key and the tag.
	Sealed []byte
	// Used is how many messages were reserved by all users of the key.
	Used    uint64
	Created time.Time
}

// Follows returns ErrConflict if Put must refuse w for a tenant with these keys. It is for
// implementations of Keys.
func (w Wrapped) Follows(held []Wrapped) error {
	i := w.Version - 1
	first := w.Revision == 1 && i == len(held)
	if next := i >= 0 && i < len(held) && w.Revision == held[i].Revision+1; !first && !next {
		return ErrConflict
	}
	return nil
}

// Keys stores wrapped data keys. Implementations are safe for concurrent use; package
// keyringtest tests them.
type Keys interface {
	// Load returns the keys of a tenant by version, or none if it has none yet. The
	// error wraps ErrErased after Erase.
	Load(ctx context.Context, tenant string) ([]Wrapped, error)
	// Put stores w: either a new version, behind the tenant's newest and of revision 1,
	// or the next revision of a version. Otherwise the error wraps ErrConflict, or
	// ErrErased, and nothing changes. Stored keys survive a crash.
	Put(ctx context.Context, w Wrapped) error
	// Erase deletes the keys of a tenant for good, and remembers that. It may be called
	// again, and for a tenant without keys.
	Erase(ctx context.Context, tenant string) error
	// Tenants yields the tenants with keys, sorted. A tenant that cannot be read is
	// yielded as an error, and the listing goes on.
	Tenants(ctx context.Context) iter.Seq2[string, error]
}

// Settler is implemented by Keys whose files keep what was replaced for a while. Settle
// removes it. RotateMaster calls it at the end, so that an old master key opens nothing.
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

// unwrap decrypts a data key.
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
