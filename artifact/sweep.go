package artifact

import (
	"context"
	"errors"
	"fmt"
)

// Sweep deletes the requester's artifacts that have expired and returns how
// many there were. Until then they take room, but no one can read them. Where
// live is given, those of which it says true stay: what a plan in force still
// points at. A Put that lengthens the life of an artifact just while it is deleted
// keeps it, also from another process.
func (s *Store) Sweep(ctx context.Context, who Requester, live func(Metadata) bool) (n int, err error) {
	defer wrap(&err, "Sweep", who.TenantID)
	return s.each(ctx, who, func(m Metadata, err error) bool {
		return err == nil && m.expired(s.now()) && (live == nil || !live(m))
	}, func(id string) (bool, error) {
		defer s.lock(who.TenantID, id)()
		// It may have been put again meanwhile.
		return s.backend.Delete(ctx, who.TenantID, id, func(held Metadata) bool { return held.expired(s.now()) })
	})
}

// each lists all artifacts of the requester's tenant, does something with those that
// are picked, and returns with how many it was done. What is listed as an error is
// asked for too, with the id as far as it is known. What fails does not stop the rest.
func (s *Store) each(ctx context.Context, who Requester, pick func(m Metadata, err error) bool, do func(id string) (bool, error)) (n int, err error) {
	var ids []string
	for m, failed := range s.backend.List(ctx, Filter{TenantID: who.TenantID}) {
		if (failed != nil || m.TenantID == who.TenantID) && pick(m, failed) {
			ids = append(ids, m.ID)
		} else {
			err = errors.Join(err, failed)
		}
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			return n, errors.Join(err, ctx.Err())
		}
		done, failed := do(id)
		if done {
			n++
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", id, failed))
		}
	}
	return n, err
}

// Reseal seals anew, under the tenant's newest key, what was sealed under an
// older one or not at all, and returns how many artifacts that were. Each is
// replaced by the same content, so it can be read at every moment, and after a
// crash Reseal goes on where it was. What has expired and is not swept is sealed
// anew too. What does not open is named in the error and does not stop the others.
// It needs a keyring.
func (s *Store) Reseal(ctx context.Context, who Requester) (n int, err error) {
	defer wrap(&err, "Reseal", who.TenantID)
	if s.keys == nil {
		return 0, errors.New("there are no keys to seal with")
	}
	current, err := s.keys.Current(ctx, who.TenantID)
	if err != nil {
		return 0, err
	}
	return s.each(ctx, who, func(m Metadata, err error) bool {
		return err == nil && needsSealing(m, current)
	}, func(id string) (bool, error) {
		err := s.change(who.TenantID, id, func() (bool, error) {
			m, content, err := s.dump(ctx, who.TenantID, id)
			if err != nil || !needsSealing(m, current) {
				return true, err
			}
			return s.write(ctx, m, content, func(held Metadata, there bool) bool { return there && held.same(m) })
		})
		if errors.Is(err, ErrNotFound) { // deleted meanwhile
			return false, nil
		}
		return err == nil, err
	})
}

func needsSealing(m Metadata, current string) bool {
	return m.EncryptionKeyID == "" || m.EncryptionKeyID != current
}

// Erase removes everything of the requester's tenant and returns how many
// artifacts that were. Where there are keys they go first: from
// then on nothing can be read, not even from copies of the backend, and nothing
// can be stored for the tenant again. After an error call it again.
func (s *Store) Erase(ctx context.Context, who Requester) (n int, err error) {
	defer wrap(&err, "Erase", who.TenantID)
	if s.keys != nil {
		if err := s.keys.Erase(ctx, who.TenantID); err != nil {
			return 0, err
		}
	}
	// A damaged record goes too, where its id is known.
	return s.each(ctx, who, func(m Metadata, _ error) bool { return IsID(m.ID) }, func(id string) (bool, error) {
		_, err := s.backend.Delete(ctx, who.TenantID, id, nil)
		return err == nil, err
	})
}

// Dump returns an artifact for a copy of the store, with its content in the
// clear: whatever its sensitivity, and also when its time is over. It is for
// those who look after a store, not for requesters, and counts for no limit. The
// errors are those of Get.
func (s *Store) Dump(ctx context.Context, tenantID, id string) (m Metadata, content string, err error) {
	defer wrap(&err, "Dump", id)
	if m, content, err = s.dump(ctx, tenantID, id); err != nil {
		return Metadata{}, "", err
	}
	m.EncryptionKeyID, m.Digest = "", ""
	return m, content, nil
}

func (s *Store) dump(ctx context.Context, tenantID, id string) (Metadata, string, error) {
	m, data, err := s.backend.Get(ctx, tenantID, id)
	if err != nil {
		return m, "", err
	}
	if m.TenantID != tenantID {
		return m, "", fmt.Errorf("the record is that of another tenant: %w", ErrCorrupt)
	}
	content, err := s.open(ctx, m, id, data)
	return m, content, err
}

// Restore keeps what Dump returned, of this store or of another, under the id
// that it has: pointers to it stay true, also where this store would name the
// content otherwise. It is encrypted where there are keys. What is there already
// stays as it is, and what is there and differs is an error that wraps ErrConflict.
func (s *Store) Restore(ctx context.Context, m Metadata, content string) (err error) {
	defer wrap(&err, "Restore", m.ID)
	if !IsID(m.ID) {
		return fmt.Errorf("%q is no id of an artifact", m.ID)
	}
	if len(content) > s.max {
		return fmt.Errorf("%d bytes, the limit is %d: %w", len(content), s.max, ErrTooLarge)
	}
	if m, err = m.complete(content, s.now()); err != nil {
		return err
	}
	defer s.lock(m.TenantID, m.ID)()
	_, held, err := s.dump(ctx, m.TenantID, m.ID)
	switch {
	case err == nil && held == content:
		return nil
	case err == nil:
		return ErrConflict
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrCorrupt), errors.Is(err, ErrSealed):
		_, err = s.write(ctx, m, content, nil)
	}
	return err
}
