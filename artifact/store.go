package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// defaultMaxBytes is the default of Options.MaxBytes: 64 MiB, many times what any model
// can read.
const defaultMaxBytes = 64 << 20

// Options tune a Store; nil or the zero value holds the defaults.
type Options struct {
	// MaxBytes limits the content of one artifact. 0 is 64 MiB.
	MaxBytes int
	// Keyring encrypts content before it reaches the backend. Nil stores it as it
	// is. Content that was stored without a keyring stays readable with one, and
	// Reseal encrypts it.
	Keyring *keyring.Keyring
	// KeyedIDs makes ids that cannot be guessed from the content; see Store.Namer. It
	// needs a Keyring, and pointers must take their ids from Namer.
	KeyedIDs bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Store keeps artifacts in a backend. It is safe for concurrent use, also by several
// processes: when two change one artifact at the same time (Put of the same content,
// Sweep, Reseal), no change is lost.
type Store struct {
	backend Backend
	max     int
	now     func() time.Time
	keys    *keyring.Keyring // nil: nothing is encrypted
	keyed   bool
	// locks serialize changes of one artifact: each reads and then writes.
	locks [64]sync.Mutex
	seed  maphash.Seed
}

// NewStore returns a store over a backend. It panics if the backend is nil.
func NewStore(b Backend, o *Options) *Store {
	if b == nil {
		panic("artifact: NewStore needs a backend")
	}
	o = cmp.Or(o, &Options{})
	s := &Store{
		backend: b, max: cmp.Or(max(o.MaxBytes, 0), defaultMaxBytes), now: o.Now, seed: maphash.MakeSeed(), keys: o.Keyring, keyed: o.KeyedIDs,
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// lock keeps other goroutines from changing an artifact until unlock is called.
// Artifacts may share a lock.
func (s *Store) lock(tenant, id string) (unlock func()) {
	mu := &s.locks[maphash.Comparable(s.seed, [2]string{tenant, id})%uint64(len(s.locks))]
	mu.Lock()
	return mu.Unlock
}

// Put stores content and returns its id. Equal content of one thread is stored once:
// putting it again adds its messages to the metadata, and may lengthen its life and
// raise its sensitivity, never the other way round. The error wraps ErrTooLarge, names
// an invalid field of the metadata, or is that of the backend or the keyring.
func (s *Store) Put(ctx context.Context, m Metadata, content string) (id string, err error) {
	defer wrap(&err, "Put", m.ThreadID)
	if len(content) > s.max {
		return "", fmt.Errorf("%d bytes, the limit is %d: %w", len(content), s.max, ErrTooLarge)
	}
	m, err = m.complete(content, s.now())
	if err != nil {
		return "", err
	}
	if m.ID, err = s.name(ctx, m, content); err != nil {
		return "", err
	}
	who := Requester{TenantID: m.TenantID}
	return m.ID, s.change(who.TenantID, m.ID, func() (bool, error) {
		next := m
		seen, _, err := s.read(ctx, who, m.ID)
		damaged := errors.Is(err, ErrCorrupt)
		switch {
		case err == nil:
			merged, changed := seen.merge(m)
			if !changed && (s.keys == nil || seen.EncryptionKeyID != "") {
				return true, nil
			}
			next = merged
		case errors.Is(err, ErrSealed):
			next, _ = seen.merge(m)
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrExpired), damaged:
			// It is gone or damaged, and is written again.
			seen = Metadata{}
		default:
			return false, err
		}
		return s.write(ctx, next, content, func(stored *Metadata) bool {
			if seen.ID != "" {
				return stored.same(seen)
			}
			return stored == nil || damaged || s.readable(who, *stored) != nil
		})
	})
}

// change calls try, which reads an artifact and then writes it, until it is done: another
// process may have changed the artifact in between.
func (s *Store) change(tenant, id string, try func() (done bool, err error)) error {
	defer s.lock(tenant, id)()
	for range attempts {
		if done, err := try(); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("it was changed by others %d times in between; try again", attempts)
}

// attempts bounds how often change tries.
const attempts = 100

// Metadata returns the metadata of an artifact without reading its content. The error
// wraps ErrNotFound, ErrExpired or ErrCorrupt, or is the backend's.
func (s *Store) Metadata(ctx context.Context, who Requester, id string) (m Metadata, err error) {
	defer wrap(&err, "Metadata", id)
	m, err = s.find(ctx, who, id)
	if err == nil {
		err = s.readable(who, m)
	}
	if errors.Is(err, ErrNotFound) {
		m = Metadata{}
	}
	return m, err
}

// find reads metadata from the backend.
func (s *Store) find(ctx context.Context, who Requester, id string) (Metadata, error) {
	if !IsID(id) {
		return Metadata{}, ErrNotFound
	}
	for m, err := range s.backend.List(ctx, Filter{TenantID: who.TenantID, Prefix: id}) {
		if err != nil {
			return Metadata{}, err
		}
		if m.ID == id && m.TenantID == who.TenantID {
			return m, nil
		}
	}
	return Metadata{}, ErrNotFound
}

// Get returns an artifact. The error wraps ErrNotFound, ErrExpired, ErrForbidden,
// ErrCorrupt or ErrSealed, or is the backend's.
func (s *Store) Get(ctx context.Context, who Requester, id string) (m Metadata, content string, err error) {
	defer wrap(&err, "Get", id)
	if m, content, err = s.read(ctx, who, id); err != nil {
		return Metadata{}, "", err
	}
	return m, content, nil
}

// read returns an artifact; with ErrSealed it still returns the metadata.
func (s *Store) read(ctx context.Context, who Requester, id string) (Metadata, string, error) {
	if !IsID(id) {
		return Metadata{}, "", ErrNotFound
	}
	m, data, err := s.backend.Get(ctx, who.TenantID, id)
	if err != nil {
		return Metadata{}, "", err
	}
	if err := s.readable(who, m); err != nil {
		return Metadata{}, "", err
	}
	if err := m.Permits(who); err != nil {
		return Metadata{}, "", err
	}
	content, err := s.open(ctx, m, id, data)
	return m, content, err
}

// readable checks tenant and expiry, whatever the backend returned.
func (s *Store) readable(who Requester, m Metadata) error {
	if m.TenantID != who.TenantID {
		return ErrNotFound
	}
	if m.expired(s.now()) {
		at, _ := m.Expires()
		return fmt.Errorf("at %s: %w", at.Format(time.RFC3339), ErrExpired)
	}
	return nil
}

// List yields the artifacts of the requester's tenant that have not expired, ordered by
// id. A damaged one is yielded as an error, and the listing goes on. Filter.TenantID is
// ignored.
func (s *Store) List(ctx context.Context, who Requester, f Filter) iter.Seq2[Metadata, error] {
	f.TenantID = who.TenantID
	return func(yield func(Metadata, error) bool) {
		for m, err := range s.backend.List(ctx, f) {
			if err == nil && s.readable(who, m) != nil {
				continue
			}
			wrap(&err, "List", m.ID)
			if !yield(m, err) {
				return
			}
		}
	}
}

// Delete removes an artifact of the requester's tenant. One that does not exist is not
// an error.
func (s *Store) Delete(ctx context.Context, who Requester, id string) (err error) {
	defer wrap(&err, "Delete", id)
	if !IsID(id) {
		return nil
	}
	defer s.lock(who.TenantID, id)()
	_, err = s.backend.Delete(ctx, who.TenantID, id, nil)
	return err
}

func wrap(err *error, op, subject string) {
	if *err != nil {
		*err = fmt.Errorf("artifact.%s(%s): %w", op, subject, *err)
	}
}

// Requester is who asks for artifacts. The zero value is for a machine without
// tenants, and may read everything.
type Requester struct {
	// TenantID is the tenant whose artifacts the requester sees.
	TenantID string
	// Clearance is the most sensitive class whose content may be read; "" allows all.
	// Metadata can always be read, so that a caller can say why content is refused.
	Clearance Sensitivity
}
