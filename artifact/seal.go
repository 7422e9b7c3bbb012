package artifact

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Namer returns the id of content in a scope (a thread), as IDOf does.
type Namer func(scope, content string) string

// Namer returns the function that gives a tenant's content its id. It is pure, so that
// a plan can hold the id before the content is stored. It is IDOf unless
// Options.KeyedIDs is set.
//
// An id gives no access: artifacts are looked up by tenant and id. But ids appear in
// file names, columns and logs, and IDOf is a plain hash. Whoever reads ids and guesses
// content (a name, a number of four digits) can check the guess. Keyed ids are the first
// 64 bits of an HMAC-SHA256 under a secret of the tenant: the same tenant, scope and
// content always have the same id, also after a change of keys, and nobody without the
// secret can compute it.
func (s *Store) Namer(ctx context.Context, tenantID string) (name Namer, err error) {
	defer wrap(&err, "Namer", tenantID)
	if !s.keyed {
		return IDOf, nil
	}
	if s.keys == nil {
		return nil, errors.New("keyed ids need a keyring")
	}
	secret, err := s.keys.Secret(ctx, tenantID, "artifact ids")
	if err != nil {
		return nil, err
	}
	return func(scope, content string) string {
		h := hmac.New(sha256.New, secret)
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(scope))))
		h.Write([]byte(scope))
		h.Write([]byte(content))
		return idFrom(h)
	}, nil
}

// Names returns the function that reports whether an id is that of content in a scope,
// by the tenant's Namer or by IDOf. Unlike Namer it never creates a key.
func (s *Store) Names(ctx context.Context, tenantID string) (names func(id, scope, content string) bool, err error) {
	defer wrap(&err, "Names", tenantID)
	plain := func(id, scope, content string) bool { return id == IDOf(scope, content) }
	if !s.keyed || s.keys == nil {
		return plain, nil
	}
	current, err := s.keys.Current(ctx, tenantID)
	if err != nil || current == "" {
		return plain, err
	}
	name, err := s.Namer(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	return func(id, scope, content string) bool { return id == name(scope, content) || plain(id, scope, content) }, nil
}

// name returns the id of content, or checks the one that the caller gave. It accepts
// the plain hash too: older plans point with it.
func (s *Store) name(ctx context.Context, m Metadata, content string) (string, error) {
	if m.ID != "" && m.ID == IDOf(m.ThreadID, content) {
		return m.ID, nil
	}
	name, err := s.Namer(ctx, m.TenantID)
	if err != nil {
		return "", err
	}
	id := name(m.ThreadID, content)
	if m.ID != "" && m.ID != id {
		return "", fmt.Errorf("the id %q is not that of the content, which is %s", m.ID, id)
	}
	return id, nil
}

// bound is the additional data of sealed content. It ties the content to its id, so
// that it opens in no other record; the keyring ties it to the tenant.
func bound(id string) []byte { return []byte("artifact\x00" + id) }

// write encrypts content if there are keys, and puts it into the backend.
func (s *Store) write(ctx context.Context, m Metadata, content string, c Condition) (done bool, err error) {
	data := []byte(content)
	m.EncryptionKeyID, m.Digest = "", ""
	if s.keys == nil && IDOf(m.ThreadID, content) != m.ID {
		m.Digest = digest(content)
	}
	if s.keys != nil {
		data, m.EncryptionKeyID, err = s.keys.Seal(ctx, m.TenantID, bound(m.ID), data)
		if err != nil {
			return false, err
		}
	}
	return s.backend.Put(ctx, m, data, c)
}

// open checks and decrypts a record. A backend may write content and metadata one after
// the other, so after a crash the metadata may be that of the content before. So the
// content decides: plain content proves itself by IDOf, encrypted content by opening for
// its id.
func (s *Store) open(ctx context.Context, m Metadata, id string, data []byte) (string, error) {
	if m.ID != id {
		return "", fmt.Errorf("the record of %s holds %s: %w", id, m.ID, ErrCorrupt)
	}
	sealed := m.EncryptionKeyID != ""
	if !sealed || s.keys == nil {
		content := string(data)
		got := IDOf(m.ThreadID, content)
		switch {
		case got == id:
			return content, nil
		case s.keys == nil && !sealed && m.Digest != "" && m.Digest == digest(content):
			// Not where there are keys: whoever can write to the backend could replace
			// encrypted content with text of their own.
			return content, nil
		case sealed:
			return "", fmt.Errorf("under %s, and no keys were given: %w", m.EncryptionKeyID, ErrSealed)
		case s.keys == nil:
			return "", fmt.Errorf("the content has the id %s: %w", got, ErrCorrupt)
		}
	}
	content, err := s.keys.Open(ctx, m.TenantID, bound(id), data)
	switch {
	case err == nil:
		return string(content), nil
	case sealed && IDOf(m.ThreadID, string(data)) == id:
		return string(data), nil
	case sealed:
		return "", fmt.Errorf("%w: %w", ErrSealed, err)
	}
	return "", fmt.Errorf("the content is not that of the id: %w", ErrCorrupt)
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
