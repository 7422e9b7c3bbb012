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
	var over []string
	var failed error
	for m, err := range s.backend.List(ctx, Filter{TenantID: who.TenantID}) {
		if err == nil && m.TenantID == who.TenantID && m.expired(s.now()) && (live == nil || !live(m)) {
			over = append(over, m.ID)
		}
		failed = errors.Join(failed, err)
	}
	for _, id := range over {
		deleted, err := s.sweep(ctx, who, id)
		if deleted {
			n++
		}
		failed = errors.Join(failed, err)
	}
	return n, failed
}

// sweep deletes one artifact unless it was put again meanwhile.
func (s *Store) sweep(ctx context.Context, who Requester, id string) (bool, error) {
	defer s.lock(who.TenantID, id)()
	return s.backend.Delete(ctx, who.TenantID, id, func(held Metadata) bool { return held.expired(s.now()) })
}

// Reseal seals anew, under the tenant's newest key, what was sealed under an
// older one or not at all, and returns how many artifacts that were. Each is
// replaced by the same content, so it can be read at every moment, and after a
// crash Reseal goes on where it was. What has expired and is not swept is sealed
// anew too. What does not open is named in the error and does not stop the others.
// It needs a Sealer with TenantKeys.
func (s *Store) Reseal(ctx context.Context, who Requester) (n int, err error) {
	defer wrap(&err, "Reseal", who.TenantID)
	keys, ok := s.sealer.(TenantKeys)
	if !ok {
		return 0, errors.New("there are no keys to seal with")
	}
	current, err := keys.Current(ctx, who.TenantID)
	if err != nil {
		return 0, err
	}
	var stale []string
	var failed error
	for m, err := range s.backend.List(ctx, Filter{TenantID: who.TenantID}) {
		if err == nil && m.TenantID == who.TenantID && needsSealing(m, current) {
			stale = append(stale, m.ID)
		}
		failed = errors.Join(failed, err)
	}
	for _, id := range stale {
		if err := ctx.Err(); err != nil {
			return n, errors.Join(failed, err)
		}
		switch err := s.reseal(ctx, who, id, current); {
		case err == nil:
			n++
		case !errors.Is(err, ErrNotFound):
			failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
		}
	}
	return n, failed
}

func needsSealing(m Metadata, current string) bool {
	return m.EncryptionKeyID == "" || m.EncryptionKeyID != current
}

func (s *Store) reseal(ctx context.Context, who Requester, id, current string) error {
	defer s.lock(who.TenantID, id)()
	for range attempts {
		m, content, err := s.dump(ctx, who.TenantID, id)
		if err != nil || !needsSealing(m, current) {
			return err
		}
		done, err := s.replace(ctx, m, content, func(held Metadata, there bool) bool { return there && held.same(m) })
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("others have changed it %d times meanwhile; try again", attempts)
}

// Erase removes everything of the requester's tenant and returns how many
// artifacts that were. Where the Sealer has TenantKeys, the keys go first: from
// then on nothing can be read, not even from copies of the backend, and nothing
// can be stored for the tenant again. After an error call it again.
func (s *Store) Erase(ctx context.Context, who Requester) (n int, err error) {
	defer wrap(&err, "Erase", who.TenantID)
	if keys, ok := s.sealer.(TenantKeys); ok {
		if err := keys.Erase(ctx, who.TenantID); err != nil {
			return 0, err
		}
	}
	var all []string
	var failed error
	for m, err := range s.backend.List(ctx, Filter{TenantID: who.TenantID}) {
		// A damaged record goes too, where its id is known.
		if IsID(m.ID) && (err != nil || m.TenantID == who.TenantID) {
			all = append(all, m.ID)
		} else {
			failed = errors.Join(failed, err)
		}
	}
	for _, id := range all {
		if _, err := s.backend.Delete(ctx, who.TenantID, id, nil); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		n++
	}
	return n, failed
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
// content otherwise. It is encrypted where there is a Sealer. What is there already
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
		return s.write(ctx, m, content)
	}
	return err
}
