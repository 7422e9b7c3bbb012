// Package apikey manages the daemon's bearer keys. Each gives access to the data of one
// tenant with some rights. A key is shown once, when it is created; only its hash is
// stored.
//
//	keys := apikey.New(store, nil)
//	token, key, err := keys.Add(ctx, apikey.Grant{Tenant: "acme", Rights: apikey.Read | apikey.Write})
//	// later, with what the client sent as "Authorization: Bearer …"
//	key, err := keys.Check(ctx, token)
//	if err != nil || !key.Rights.Has(apikey.Write) { … }
//
// # Why no slow hash
//
// A key has 256 random bits, and its SHA-256 is stored. Slow, salted hashes (bcrypt,
// Argon2) protect passwords, which people choose from a small set. Nobody guesses 256
// random bits, however fast the hash is, so a slow one would cost every request and
// protect nothing.
package apikey

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

var (
	// ErrUnauthorized says that a token is not a valid key. It does not say why, because
	// the client may be guessing.
	ErrUnauthorized = errors.New("not a valid API key")
	// ErrRevoked says that a key was revoked. It wraps ErrUnauthorized, and is returned
	// only for a token with the right secret.
	ErrRevoked = fmt.Errorf("%w any more: it was revoked", ErrUnauthorized)
	// ErrExpired says that a key has expired. Otherwise it is like ErrRevoked.
	ErrExpired = fmt.Errorf("%w any more: it has expired", ErrUnauthorized)
	// ErrNotFound says that no key has the id.
	ErrNotFound = errors.New("no such API key")
	// ErrExists says that the id is taken.
	ErrExists = errors.New("an API key with this id exists")
)

// Grant says what a key gives access to.
type Grant struct {
	// Tenant is the tenant whose data the key gives access to.
	Tenant string
	// Rights must not be empty.
	Rights Rights
	// Name tells people what the key is used for; at most 200 bytes.
	Name string
	// Expires is when the key expires; the zero time is never.
	Expires time.Time
}

// Key is the stored part of a key, without its secret.
type Key struct {
	// ID is the part of the token that may be shown and logged.
	ID string
	Grant
	Created time.Time
	// Revoked is when the key was revoked; zero if it was not.
	Revoked time.Time
	// Hash is the SHA-256 of the whole token.
	Hash [sha256.Size]byte
}

// Store stores keys. Implementations are safe for concurrent use; package apikeytest tests
// them.
type Store interface {
	// Add stores a new key. The error wraps ErrExists if its id is taken.
	Add(ctx context.Context, k Key) error
	// Get returns a key, also a revoked one. The error wraps ErrNotFound.
	Get(ctx context.Context, id string) (Key, error)
	// List yields all keys ordered by id, also revoked ones. A key that cannot be read is
	// yielded as an error, and the listing goes on.
	List(ctx context.Context) iter.Seq2[Key, error]
	// Revoke marks a key as revoked, effective when it returns. A revoked key keeps its
	// first time. The error wraps ErrNotFound.
	Revoke(ctx context.Context, id string, at time.Time) error
}

// Options configure Keys; nil or the zero value holds the defaults.
type Options struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Keys creates and checks keys. It is safe for concurrent use, and caches nothing: a key
// that is revoked in one process is revoked in all.
type Keys struct {
	store Store
	now   func() time.Time
}

// New returns the keys in a store. It panics if the store is nil.
func New(s Store, o *Options) *Keys {
	if s == nil {
		panic("apikey: New needs a store")
	}
	k := &Keys{store: s, now: time.Now}
	if o != nil && o.Now != nil {
		k.now = o.Now
	}

	return k
}

// A token is the prefix, the id, "_" and the secret. The alphabet is base32 in lower case,
// so that a double click selects all of it.
const (
	prefix      = "plk_"
	idBytes     = 10
	idLen       = idBytes * 8 / 5
	secretBytes = 32
	secretLen   = 52
	maxName     = 200
	maxTenant   = 1000
)

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Add creates a key and returns its token, which is not stored.
func (k *Keys) Add(ctx context.Context, g Grant) (token string, _ Key, err error) {
	defer wrap(&err, "Add", g.Tenant)
	switch now := k.now(); {
	case !g.Rights.valid():
		return "", Key{}, fmt.Errorf("a key needs rights: some of %s", all)
	case len(g.Name) > maxName:
		return "", Key{}, fmt.Errorf("the name has %d bytes, the limit is %d", len(g.Name), maxName)
	case len(g.Tenant) > maxTenant:
		return "", Key{}, fmt.Errorf("the tenant has %d bytes, the limit is %d", len(g.Tenant), maxTenant)
	case !g.Expires.IsZero() && !g.Expires.After(now):
		return "", Key{}, fmt.Errorf("the key would expire at %s, which is in the past", g.Expires.Format(time.RFC3339))
	}
	var random [idBytes + secretBytes]byte
	rand.Read(random[:]) // never fails
	id := encoding.EncodeToString(random[:idBytes])
	token = prefix + id + "_" + encoding.EncodeToString(random[idBytes:])
	g.Expires = when(g.Expires)
	key := Key{ID: id, Grant: g, Created: when(k.now()), Hash: sha256.Sum256([]byte(token))}
	if err := k.store.Add(ctx, key); err != nil {
		return "", Key{}, err
	}
	return token, key, nil
}

// when returns a time as all stores keep it: UTC, whole seconds.
func when(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

// Check returns the key of a token. The error wraps ErrUnauthorized or is that of the
// store; it never contains the token. The hash is compared in constant time, also if the
// id does not exist.
func (k *Keys) Check(ctx context.Context, token string) (_ Key, err error) {
	defer wrap(&err, "Check", "")
	id, ok := idOf(token)
	if !ok {
		return Key{}, ErrUnauthorized
	}
	key, err := k.store.Get(ctx, id)
	known := err == nil
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Key{}, err
	}
	hash := sha256.Sum256([]byte(token))
	if same := subtle.ConstantTimeCompare(hash[:], key.Hash[:]) == 1; !same || !known || key.ID != id {
		return Key{}, ErrUnauthorized
	}
	switch {
	case !key.Revoked.IsZero():
		return Key{}, fmt.Errorf("key %s: %w", id, ErrRevoked)
	case !key.Expires.IsZero() && !k.now().Before(key.Expires):
		return Key{}, fmt.Errorf("key %s: %w", id, ErrExpired)
	}
	return key, nil
}

// idOf returns the id in a token of the right form.
func idOf(token string) (string, bool) {
	rest, ok := strings.CutPrefix(token, prefix)
	if !ok || len(rest) != idLen+1+secretLen || rest[idLen] != '_' {
		return "", false
	}
	return rest[:idLen], IsID(rest[:idLen]) && inAlphabet(rest[idLen+1:])
}

// IsID reports whether s has the form of a key's id.
func IsID(s string) bool { return len(s) == idLen && inAlphabet(s) }

func inAlphabet(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// List yields all keys ordered by id, also revoked and expired ones.
func (k *Keys) List(ctx context.Context) iter.Seq2[Key, error] { return k.store.List(ctx) }

// Revoke revokes a key at once. Revoking it again changes nothing. The error wraps
// ErrNotFound.
func (k *Keys) Revoke(ctx context.Context, id string) (err error) {
	defer wrap(&err, "Revoke", id)
	if !IsID(id) {
		return ErrNotFound
	}
	return k.store.Revoke(ctx, id, when(k.now()))
}

func wrap(err *error, op, subject string) {
	if *err != nil {
		*err = fmt.Errorf("apikey.%s(%s): %w", op, subject, *err)
	}
}

// Rights is a set of rights. None includes another: a key that may only write cannot read.
type Rights uint8

// The rights there are.
const (
	// Read allows to read the tenant's threads, plans, prompts and artifacts. It never
	// calls a model or starts a job.
	Read Rights = 1 << iota
	// Write allows to append; together with Read also calls that return content: steps,
	// compacting, undoing. Nothing in the log can be lost by it.
	Write
	// Admin allows to delete threads.
	Admin

	all = Read | Write | Admin
)

var rightNames = []struct {
	right Rights
	name  string
}{{Read, "read"}, {Write, "write"}, {Admin, "admin"}}

// Has reports whether r holds all of want.
func (r Rights) Has(want Rights) bool { return r&want == want }

func (r Rights) valid() bool { return r != 0 && r&^all == 0 }

// String writes the rights as ParseRights reads them: "read,write".
func (r Rights) String() string {
	var names []string
	for _, n := range rightNames {
		if r.Has(n.right) {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

// ParseRights reads names separated by commas. The error names an unknown right; an empty
// text is an error too.
func ParseRights(s string) (Rights, error) {
	var r Rights
next:
	for name := range strings.SplitSeq(s, ",") {
		for _, n := range rightNames {
			if strings.TrimSpace(name) == n.name {
				r |= n.right
				continue next
			}
		}
		return 0, fmt.Errorf("apikey.ParseRights: %q is not a right: want some of %s", name, all)
	}
	return r, nil
}
