package artifact

import (
	"context"
	"errors"
	"fmt"
)

// Sweep deletes the expired artifacts of the requester's tenant and returns their
// number. Artifacts for which live returns true stay, such as those that a current plan
// points to; live may be nil. A concurrent Put that lengthens the life of an artifact
// wins.
func (s *Store) Sweep(ctx context.Context, who Requester, live func(Metadata) bool) (n int, err error) {
	defer wrap(&err, "Sweep", who.TenantID)
	return s.each(ctx, who, func(m Metadata) bool { return m.expired(s.now()) && (live == nil || !live(m)) }, func(id string) (bool, error) {
		defer s.lock(who.TenantID, id)()
		// It may have been put again since it was listed.
		return s.backend.Delete(ctx, who.TenantID, id, func(stored *Metadata) bool { return stored != nil && stored.expired(s.now()) })
	})
}

// each calls do for the artifacts of the requester's tenant that pick selects, and
// counts those for which it returns true. An error does not stop the rest.
func (s *Store) each(ctx context.Context, who Requester, pick func(Metadata) bool, do func(id string) (bool, error)) (n int, err error) {
	var ids []string
	for m, failed := range s.backend.List(ctx, Filter{TenantID: who.TenantID}) {
		if failed == nil && m.TenantID == who.TenantID && pick(m) {
			ids = append(ids, m.ID)
		}
		err = errors.Join(err, failed)
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

// Reseal encrypts, under the tenant's newest data key, all artifacts that are under an
// older one or not encrypted, expired ones too, and returns their number. Each can be
// read at any time, and after a crash Reseal may be called again. Artifacts that cannot
// be decrypted are named in the error and do not stop the others. It needs a keyring.
func (s *Store) Reseal(ctx context.Context, who Requester) (n int, err error) {
	defer wrap(&err, "Reseal", who.TenantID)
	if s.keys == nil {
		return 0, errors.New("there are no keys to seal with")
	}
	current, err := s.keys.Current(ctx, who.TenantID)
	if err != nil {
		return 0, err
	}
	return s.each(ctx, who, func(m Metadata) bool { return needsSealing(m, current) }, func(id string) (bool, error) {
		err := s.change(who.TenantID, id, func() (bool, error) {
			m, content, err := s.dump(ctx, who.TenantID, id)
			if err != nil || !needsSealing(m, current) {
				return true, err
			}
			return s.write(ctx, m, content, func(stored *Metadata) bool { return stored.same(m) })
		})
		if errors.Is(err, ErrNotFound) { // deleted since it was listed
			return false, nil
		}
		return err == nil, err
	})
}

func needsSealing(m Metadata, current string) bool {
	return m.EncryptionKeyID == "" || m.EncryptionKeyID != current
}

// Dump returns an artifact with its content decrypted, whatever its sensitivity, and
// also when it has expired. It is for maintenance of the store, not for requesters. The
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
		return m, "", fmt.Errorf("the record belongs to another tenant: %w", ErrCorrupt)
	}
	content, err := s.open(ctx, m, id, data)
	return m, content, err
}

// Restore stores what Dump returned, from this store or another, under the same id, so
// that pointers to it stay valid. It is encrypted if there are keys. If the content is
// already stored, Restore does nothing; if other content has the id, the error wraps
// ErrConflict.
func (s *Store) Restore(ctx context.Context, m Metadata, content string) (err error) {
	defer wrap(&err, "Restore", m.ID)
	if !IsID(m.ID) {
		return fmt.Errorf("%q is not an artifact id", m.ID)
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
