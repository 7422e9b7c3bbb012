package artifact

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/keyring"
)

// DefaultMaxBytes is the size limit of one artifact where Options set none:
// 64 MiB, many times what any model can read.
const DefaultMaxBytes = 64 << 20

// Options tune a Store; nil or the zero value holds the defaults.
type Options struct {
	// MaxBytes limits the content of one artifact. 0 is DefaultMaxBytes.
	MaxBytes int
	// Keyring encrypts content before it reaches the backend. Nil stores it as it
	// is. Content that was stored without a keyring stays readable with one, and
	// Reseal encrypts it.
	Keyring *keyring.Keyring
	// KeyedIDs makes ids that nobody can guess who knows the content; see
	// Store.Namer. It needs a Keyring, and whoever makes pointers
	// must take their ids from Namer.
	KeyedIDs bool
	// Limits bound how much each requester reads. The zero value bounds nothing.
	Limits Limits
	// Now is the clock that dates and expires artifacts. Nil is time.Now.
	Now func() time.Time
}

// Store keeps artifacts in a backend and holds what must be true of all of
// them. It is safe for concurrent use. When several processes change what is
// known about the same artifact at the same moment (Put of the same content,
// Sweep, Reseal), each goes on from what the other left.
type Store struct {
	backend Backend
	max     int
	now     func() time.Time
	keys    *keyring.Keyring // nil: nothing is encrypted
	keyed   bool
	limiter *limiter
	// locks keep changes of the same artifact apart: each reads and then writes.
	locks [64]sync.Mutex
	seed  maphash.Seed
}

// NewStore returns a store over a backend. It panics if the backend is nil.
func NewStore(b Backend, o *Options) *Store {
	if b == nil {
		panic("artifact: NewStore needs a backend")
	}
	s := &Store{backend: b, max: DefaultMaxBytes, now: time.Now, seed: maphash.MakeSeed()}
	if o == nil {
		o = &Options{}
	}
	if o.MaxBytes > 0 {
		s.max = o.MaxBytes
	}
	if o.Now != nil {
		s.now = o.Now
	}
	s.keys, s.keyed = o.Keyring, o.KeyedIDs
	s.limiter = newLimiter(o.Limits, s.now)
	return s
}

// lock keeps others from changing an artifact until the function is called that
// it returns. Artifacts may share a lock.
func (s *Store) lock(tenant, id string) (unlock func()) {
	mu := &s.locks[maphash.Comparable(s.seed, [2]string{tenant, id})%uint64(len(s.locks))]
	mu.Lock()
	return mu.Unlock
}

// Put stores content and returns its id, which the tenant's Namer gives for the
// thread. The same content of the same thread is kept once: putting it again adds
// its messages to the metadata, and may lengthen its life and raise its
// sensitivity, never the other way. The error wraps ErrTooLarge, names a field
// of the metadata that cannot be kept, or is that of the backend or the keyring.
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
			// What is gone or damaged is written anew.
			seen = Metadata{}
		default:
			return false, err
		}
		return s.write(ctx, next, content, func(held Metadata, there bool) bool {
			if seen.ID != "" {
				return there && held.same(seen)
			}
			return !there || damaged || s.readable(who, held) != nil
		})
	})
}

// change makes a change of an artifact, which reads and then writes, until it is done:
// another process may be faster.
func (s *Store) change(tenant, id string, try func() (done bool, err error)) error {
	defer s.lock(tenant, id)()
	for range attempts {
		if done, err := try(); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("others have changed it %d times meanwhile; try again", attempts)
}

// attempts bounds how often a change is made anew that another process was
// faster than.
const attempts = 100

// Metadata returns what is known about an artifact without reading it, so that
// the caller can decide whether to. The error wraps ErrNotFound, ErrExpired or
// ErrCorrupt, is a *LimitError, or is the backend's.
func (s *Store) Metadata(ctx context.Context, who Requester, id string) (m Metadata, err error) {
	defer wrap(&err, "Metadata", id)
	if err := s.limiter.admit(who); err != nil {
		return Metadata{}, err
	}
	m, err = s.find(ctx, who, id)
	if err == nil {
		err = s.readable(who, m)
	}
	if errors.Is(err, ErrNotFound) {
		m = Metadata{}
	}
	return m, err
}

// find asks the backend for metadata alone.
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
// ErrCorrupt or ErrSealed, is a *LimitError, or is the backend's.
func (s *Store) Get(ctx context.Context, who Requester, id string) (m Metadata, content string, err error) {
	defer wrap(&err, "Get", id)
	if err := s.limiter.admit(who); err != nil {
		return Metadata{}, "", err
	}
	m, content, err = s.read(ctx, who, id)
	if err != nil {
		return Metadata{}, "", err
	}
	s.limiter.charge(who, len(content))
	return m, content, nil
}

// read returns an artifact; with ErrSealed it returns what is known about it.
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
	if m.Sensitivity.above(who.Clearance) {
		return Metadata{}, "", fmt.Errorf("it is %s and the requester may read up to %s: %w", m.Sensitivity, who.Clearance, ErrForbidden)
	}
	content, err := s.open(ctx, m, id, data)
	return m, content, err
}

// readable holds tenancy and expiry, whatever the backend gave.
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

// List yields the artifacts of the requester's tenant that can be read, ordered
// by id. A damaged one comes as an error in its place, and the listing goes on.
// The tenant of the filter is not used.
func (s *Store) List(ctx context.Context, who Requester, f Filter) iter.Seq2[Metadata, error] {
	f.TenantID = who.TenantID
	return func(yield func(Metadata, error) bool) {
		if err := s.limiter.admit(who); err != nil {
			wrap(&err, "List", who.TenantID)
			yield(Metadata{}, err)
			return
		}
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

// Delete removes an artifact of the requester's tenant. Removing one that is
// not there is no error.
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
