package artifact

import (
	"context"
	"errors"
	"fmt"
)

// Sweep deletes the requester's artifacts that have expired and returns how
// many there were. Until then they take room, but no one can read them. Where
// live is given, those of which it says true stay: what a plan in force still
// points at. A Put in another process that lengthens the life of an artifact
// just while it is deleted is lost; let one process sweep.
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
	m, err := s.find(ctx, who, id)
	if err != nil || !m.expired(s.now()) {
		return false, ignore(err, ErrNotFound)
	}
	return true, s.backend.Delete(ctx, who.TenantID, id)
}

// Reseal seals anew, under the tenant's newest key, what was sealed under an
// older one or not at all, and returns how many artifacts that were. Each is
// replaced by the same content, so it can be read at every moment, and after a
// crash Reseal goes on where it was. What cannot be read is named in the error
// and does not stop the others. It needs a Sealer with TenantKeys.
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
		if err == nil && s.readable(who, m) == nil && needsSealing(m, current) {
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
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrExpired):
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
	m, content, err := s.read(ctx, who, id)
	if err != nil || !needsSealing(m, current) {
		return err
	}
	return s.write(ctx, m, content)
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
		if err := s.backend.Delete(ctx, who.TenantID, id); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		n++
	}
	return n, failed
}

// ignore drops an error that is expected.
func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
