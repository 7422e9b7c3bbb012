// Package apikey is the bearer keys of the daemon: each opens the data of one
// tenant with some rights. A key is shown once, when it is made; what is kept is
// a hash, from which it cannot be had back.
//
//	keys := apikey.New(store, nil)
//	token, key, err := keys.Add(ctx, apikey.Grant{Tenant: "acme", Rights: apikey.Read | apikey.Write})
//	// later, with what the client sent as "Authorization: Bearer …"
//	key, err := keys.Check(ctx, token)
//	if err != nil || !key.Rights.Has(apikey.Write) { … }
//
// # Why no slow hash
//
// A key's secret is 256 random bits, and what is kept is SHA-256 of the whole
// key. Slow, salted hashes (bcrypt, Argon2) make guessing of passwords dear,
// because people choose them from a small set. Nobody guesses 256 random bits,
// however fast each guess is, and two keys never have the same secret, so a slow
// hash would cost every request and protect nothing.
package apikey

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

var (
	// ErrUnauthorized says that a token is no valid key. Which part of it is
	// wrong is not told, for the client may be guessing.
	ErrUnauthorized = errors.New("not a valid API key")
	// ErrRevoked says that the key was taken back. It is told only to who has its
	// secret, and wraps ErrUnauthorized.
	ErrRevoked = fmt.Errorf("%w any more: it was revoked", ErrUnauthorized)
	// ErrExpired says that the key has ended, in the same way.
	ErrExpired = fmt.Errorf("%w any more: its time is over", ErrUnauthorized)
	// ErrNotFound says that there is no key with an id.
	ErrNotFound = errors.New("no such API key")
	// ErrExists says that there is a key with the id already.
	ErrExists = errors.New("there is an API key with this id")
)

// Grant is what a key is for.
type Grant struct {
	// Tenant is whose data the key opens; "" on a machine without tenants.
	Tenant string
	// Rights is what it may do there. It must not be empty.
	Rights Rights
	// Name tells people what the key is used for; at most 200 bytes.
	Name string
	// Expires is when the key ends; the zero time is never.
	Expires time.Time
}

// Key is what is known of a key: never its secret.
type Key struct {
	// ID is the part of the key that may be shown and logged.
	ID string
	Grant
	Created time.Time
	// Revoked is when the key was taken back; zero when it was not.
	Revoked time.Time
	// Hash is SHA-256 of the whole key.
	Hash [sha256.Size]byte
}

// Store keeps keys. Implementations are safe for concurrent use; package
// apikeytest proves one.
type Store interface {
	// Add keeps a new key. The error wraps ErrExists when its id is taken.
	Add(ctx context.Context, k Key) error
	// Get returns a key, revoked ones too. The error wraps ErrNotFound.
	Get(ctx context.Context, id string) (Key, error)
	// List yields all keys ordered by id, revoked ones too. One that cannot be
	// read comes as an error in its place, and the listing goes on.
	List(ctx context.Context) iter.Seq2[Key, error]
	// Revoke takes a key back, for all that ask after it returns. Of a key that
	// was revoked before, the first time stays. The error wraps ErrNotFound.
	Revoke(ctx context.Context, id string, at time.Time) error
}

// Options tune Keys; nil or the zero value holds the defaults.
type Options struct {
	// Now is the clock that dates and expires keys. Nil is time.Now.
	Now func() time.Time
	// Random is where secrets come from. Nil is crypto/rand.
	Random io.Reader
}

// Keys makes and checks keys. It is safe for concurrent use, and holds no key in
// memory: what Revoke does in one process holds at once in all.
type Keys struct {
	store  Store
	now    func() time.Time
	random io.Reader
}

// New returns the keys in a store. It panics if the store is nil.
func New(s Store, o *Options) *Keys {
	if s == nil {
		panic("apikey: New needs a store")
	}
	k := &Keys{store: s, now: time.Now, random: rand.Reader}
	if o != nil && o.Now != nil {
		k.now = o.Now
	}
	if o != nil && o.Random != nil {
		k.random = o.Random
	}
	return k
}

// The form of a token: prefix, id, "_", secret. The alphabet is that of base32
// in small letters, so that a double click takes the whole.
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

// Add makes a key and returns its token, which is "plk_", the id and 256 random
// bits. The token is not kept and cannot be had again.
func (k *Keys) Add(ctx context.Context, g Grant) (token string, _ Key, err error) {
	defer wrap(&err, "Add", g.Tenant)
	switch now := k.now(); {
	case !g.Rights.valid():
		return "", Key{}, fmt.Errorf("a key needs rights: some of %s", all)
	case len(g.Name) > maxName:
		return "", Key{}, fmt.Errorf("the name has %d bytes, at most %d are kept", len(g.Name), maxName)
	case len(g.Tenant) > maxTenant:
		return "", Key{}, fmt.Errorf("the tenant has %d bytes, at most %d are kept", len(g.Tenant), maxTenant)
	case !g.Expires.IsZero() && !g.Expires.After(now):
		return "", Key{}, fmt.Errorf("the key would end at %s, which is past", g.Expires.Format(time.RFC3339))
	}
	var random [idBytes + secretBytes]byte
	if _, err := io.ReadFull(k.random, random[:]); err != nil {
		return "", Key{}, err
	}
	id := encoding.EncodeToString(random[:idBytes])
	token = prefix + id + "_" + encoding.EncodeToString(random[idBytes:])
	g.Expires = when(g.Expires)
	key := Key{ID: id, Grant: g, Created: when(k.now()), Hash: sha256.Sum256([]byte(token))}
	if err := k.store.Add(ctx, key); err != nil {
		return "", Key{}, err
	}
	return token, key, nil
}

// when is a time as every store keeps it: UTC, whole seconds.
func when(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

// Check returns the key of a token. The error wraps ErrUnauthorized, or is the
// store's: then nobody knows whether the token is valid. It never holds the
// token. The hash is compared in constant time, also when there is no such id.
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

// idOf finds the id in a token of the right form.
func idOf(token string) (string, bool) {
	rest, ok := strings.CutPrefix(token, prefix)
	if !ok || len(rest) != idLen+1+secretLen || rest[idLen] != '_' {
		return "", false
	}
	return rest[:idLen], IsID(rest[:idLen]) && inAlphabet(rest[idLen+1:])
}

// IsID reports whether s has the form of a key's id. Such an id is safe as a
// file name.
func IsID(s string) bool { return len(s) == idLen && inAlphabet(s) }

func inAlphabet(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// List yields all keys ordered by id, revoked and expired ones too.
func (k *Keys) List(ctx context.Context) iter.Seq2[Key, error] { return k.store.List(ctx) }

// Revoke takes a key back at once. Revoking it again changes nothing. The error
// wraps ErrNotFound.
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
