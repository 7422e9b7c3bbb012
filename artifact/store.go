package artifact

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// DefaultMaxBytes is the size limit of one artifact where Options set none:
// 64 MiB, many times what any model can read.
const DefaultMaxBytes = 64 << 20

// Options tune a Store; nil or the zero value holds the defaults.
type Options struct {
	// MaxBytes limits the content of one artifact. 0 is DefaultMaxBytes.
	MaxBytes int
	// Now is the clock that dates and expires artifacts. Nil is time.Now.
	Now func() time.Time
}

// Requester is who asks. The zero value is the owner of a machine without
// tenants.
type Requester struct {
	// TenantID is the tenant whose artifacts may be seen.
	TenantID string
}

// Store keeps artifacts in a backend and holds what must be true of all of
// them. It is safe for concurrent use.
type Store struct {
	backend Backend
	max     int
	now     func() time.Time
}

// NewStore returns a store over a backend. It panics if the backend is nil.
func NewStore(b Backend, o *Options) *Store {
	if b == nil {
		panic("artifact: NewStore needs a backend")
	}
	s := &Store{backend: b, max: DefaultMaxBytes, now: time.Now}
	if o != nil && o.MaxBytes > 0 {
		s.max = o.MaxBytes
	}
	if o != nil && o.Now != nil {
		s.now = o.Now
	}
	return s
}

// Put stores content and returns its id, which IDOf gives for the thread. The
// same content of the same thread is kept once: putting it again adds its
// messages to the metadata, and may lengthen its life and raise its
// sensitivity, never the other way. The error wraps ErrTooLarge, names a field
// of the metadata that cannot be kept, or is the backend's.
func (s *Store) Put(ctx context.Context, m Metadata, content string) (id string, err error) {
	defer wrap(&err, "Put", m.ThreadID)
	if len(content) > s.max {
		return "", fmt.Errorf("%d bytes, the limit is %d: %w", len(content), s.max, ErrTooLarge)
	}
	m, err = m.complete(content, s.now())
	if err != nil {
		return "", err
	}
	held, _, err := s.read(ctx, Requester{m.TenantID}, m.ID)
	switch {
	case err == nil:
		merged, changed := held.merge(m)
		if !changed {
			return m.ID, nil
		}
		m = merged
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrExpired), errors.Is(err, ErrCorrupt):
		// What is gone or damaged is written anew.
	default:
		return "", err
	}
	return m.ID, s.backend.Put(ctx, m, []byte(content))
}

// Metadata returns what is known about an artifact without reading it, so that
// the caller can decide whether to. The error wraps ErrNotFound, ErrExpired or
// ErrCorrupt, or is the backend's.
func (s *Store) Metadata(ctx context.Context, who Requester, id string) (m Metadata, err error) {
	defer wrap(&err, "Metadata", id)
	if !IsID(id) {
		return Metadata{}, ErrNotFound
	}
	for m, err := range s.backend.List(ctx, Filter{TenantID: who.TenantID, Prefix: id}) {
		if err != nil {
			return Metadata{}, err
		}
		if m.ID == id {
			return m, s.readable(who, m)
		}
	}
	return Metadata{}, ErrNotFound
}

// Get returns an artifact. The error wraps ErrNotFound, ErrExpired or
// ErrCorrupt, or is the backend's.
func (s *Store) Get(ctx context.Context, who Requester, id string) (m Metadata, content string, err error) {
	defer wrap(&err, "Get", id)
	return s.read(ctx, who, id)
}

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
	content := string(data)
	if got := IDOf(m.ThreadID, content); m.ID != id || got != id {
		return Metadata{}, "", fmt.Errorf("the content has the id %s: %w", got, ErrCorrupt)
	}
	return m, content, nil
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
	return s.backend.Delete(ctx, who.TenantID, id)
}

// Sweep deletes the requester's artifacts that have expired and returns how
// many there were. Until then they take room, but no one can read them.
func (s *Store) Sweep(ctx context.Context, who Requester) (n int, err error) {
	defer wrap(&err, "Sweep", who.TenantID)
	var failed error
	for m, err := range s.backend.List(ctx, Filter{TenantID: who.TenantID}) {
		if err == nil && m.TenantID == who.TenantID && m.expired(s.now()) {
			err = s.backend.Delete(ctx, m.TenantID, m.ID)
			if err == nil {
				n++
			}
		}
		failed = errors.Join(failed, err)
	}
	return n, failed
}

func wrap(err *error, op, subject string) {
	if *err != nil {
		*err = fmt.Errorf("artifact.%s(%s): %w", op, subject, *err)
	}
}
