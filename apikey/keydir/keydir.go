// Package keydir keeps API keys as files, one JSON document a key:
//
//	<id>.json
//
// Each is written whole or not at all, and only its owner may read it. There is
// no lock: several processes may add, check and revoke at the same time, and a
// key that one has revoked is refused by all at once.
package keydir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/apikey"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
)

const (
	suffix  = ".json"
	version = 1
)

// Store is an apikey.Store in a directory. It is safe for concurrent use.
type Store struct{ files durable.Dir }

// document is a key as it stands in its file.
type document struct {
	Version int        `json:"version"`
	ID      string     `json:"id"`
	Tenant  string     `json:"tenant,omitempty"`
	Rights  string     `json:"rights"`
	Name    string     `json:"name,omitempty"`
	Created time.Time  `json:"created_at"`
	Expires *time.Time `json:"expires_at,omitempty"`
	Revoked *time.Time `json:"revoked_at,omitempty"`
	// Hash is SHA-256 of the whole key, in hexadecimal.
	Hash string `json:"sha256"`
}

// Open opens the directory, which it makes with all above it.
func Open(path string) (*Store, error) {
	files, err := durable.Open(path)
	if err != nil {
		return nil, fmt.Errorf("keydir.Open(%s): %w", path, err)
	}
	return &Store{files}, nil
}

// Close gives the directory back to the system. Nothing is lost without it.
func (s *Store) Close() error { return s.files.Root.Close() }

// Add implements apikey.Store.
func (s *Store) Add(ctx context.Context, k apikey.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !apikey.IsID(k.ID) {
		return fmt.Errorf("%q is no id of an API key", k.ID)
	}
	data, err := encode(k)
	if err != nil {
		return err
	}
	err = s.files.Create(k.ID+suffix, data)
	if errors.Is(err, fs.ErrExist) {
		return apikey.ErrExists
	}
	return err
}

// Get implements apikey.Store.
func (s *Store) Get(ctx context.Context, id string) (apikey.Key, error) {
	if err := ctx.Err(); err != nil {
		return apikey.Key{}, err
	}
	if !apikey.IsID(id) {
		return apikey.Key{}, apikey.ErrNotFound
	}
	data, err := s.files.Root.ReadFile(id + suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return apikey.Key{}, apikey.ErrNotFound
	}
	if err != nil {
		return apikey.Key{}, err
	}
	k, err := decode(data)
	if err == nil && k.ID != id {
		err = fmt.Errorf("it holds the key %q", k.ID)
	}
	if err != nil {
		return apikey.Key{}, fmt.Errorf("%s%s: %w; restore it, or delete it and make another key", id, suffix, err)
	}
	return k, nil
}

// List implements apikey.Store.
func (s *Store) List(ctx context.Context) iter.Seq2[apikey.Key, error] {
	return func(yield func(apikey.Key, error) bool) {
		entries, err := s.files.List(".")
		if err != nil {
			yield(apikey.Key{}, err)
			return
		}
		for _, e := range entries {
			id, ok := strings.CutSuffix(e.Name(), suffix)
			if !ok || !apikey.IsID(id) {
				continue
			}
			k, err := s.Get(ctx, id)
			if errors.Is(err, apikey.ErrNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				k.ID = id
			}
			if !yield(k, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// Revoke implements apikey.Store.
func (s *Store) Revoke(ctx context.Context, id string, at time.Time) error {
	k, err := s.Get(ctx, id)
	if err != nil || !k.Revoked.IsZero() {
		return err
	}
	k.Revoked = at
	data, err := encode(k)
	if err != nil {
		return err
	}
	return s.files.Replace(id+suffix, data)
}

func encode(k apikey.Key) ([]byte, error) {
	d := document{
		Version: version, ID: k.ID, Tenant: k.Tenant, Rights: k.Rights.String(), Name: k.Name,
		Created: k.Created, Hash: hex.EncodeToString(k.Hash[:]),
	}
	if !k.Expires.IsZero() {
		d.Expires = &k.Expires
	}
	if !k.Revoked.IsZero() {
		d.Revoked = &k.Revoked
	}
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}

func decode(data []byte) (apikey.Key, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return apikey.Key{}, err
	}
	if d.Version != version {
		return apikey.Key{}, fmt.Errorf("version %d of an API key; this program reads version %d", d.Version, version)
	}
	rights, err := apikey.ParseRights(d.Rights)
	if err != nil {
		return apikey.Key{}, err
	}
	hash, err := hex.DecodeString(d.Hash)
	if err != nil || len(hash) != sha256.Size {
		return apikey.Key{}, errors.New("its hash is not 64 hexadecimal digits")
	}
	k := apikey.Key{
		ID: d.ID, Grant: apikey.Grant{Tenant: d.Tenant, Rights: rights, Name: d.Name},
		Created: d.Created, Hash: [sha256.Size]byte(hash),
	}
	if d.Expires != nil {
		k.Expires = *d.Expires
	}
	if d.Revoked != nil {
		k.Revoked = *d.Revoked
	}
	return k, nil
}
