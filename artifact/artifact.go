// Package artifact stores content that was taken out of prompts, so that it can be
// read back.
//
// A Store gives all guarantees, whatever its Backend is: ids that follow from the
// content, one copy of equal content, expiry, separate tenants, classes of
// sensitivity, a limit of size, encryption if it has a keyring, and a check that content
// comes back as it was stored. A Backend only keeps records; package
// artifacttest tests one.
//
//	s := artifact.NewStore(mem.New(), nil)
//	id, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", Tool: "Bash"}, output)
//	_, content, err := s.Get(ctx, artifact.Requester{}, id)
package artifact

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// idPrefix tells artifact ids from message ids.
const idPrefix = "art_"

// idDigits is the number of hexadecimal digits behind the prefix.
const idDigits = 16

// IDOf returns the id of content in a scope (a thread): a hash of both, so that equal
// content of one thread is one artifact. Anybody who knows the content can compute it;
// see Store.Namer for ids that cannot be guessed.
func IDOf(scope, content string) string {
	h := sha256.New()
	h.Write([]byte(scope))
	h.Write([]byte{0})
	h.Write([]byte(content))
	return idFrom(h)
}

func idFrom(h hash.Hash) string { return idPrefix + hex.EncodeToString(h.Sum(nil)[:idDigits/2]) }

// IsID reports whether s has the form of an artifact id: "art_" and 16 lower-case
// hexadecimal digits. Such an id is safe as a file name.
func IsID(s string) bool {
	digits, ok := strings.CutPrefix(s, idPrefix)
	return ok && len(digits) == idDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// Sensitivity is the class of content that decides who may read it. The zero value is
// Internal.
type Sensitivity string

// The classes, least sensitive first.
const (
	Public       Sensitivity = "public"
	Internal     Sensitivity = "internal"
	Confidential Sensitivity = "confidential"
	Restricted   Sensitivity = "restricted"
)

// above reports whether s is more sensitive than the clearance allows. An unknown class
// is above every clearance, and an unknown clearance allows nothing.
func (s Sensitivity) above(clearance Sensitivity) bool {
	if clearance == "" {
		return false
	}
	rank := slices.Index(sensitivities, s)
	return rank < 0 || rank > slices.Index(sensitivities, clearance)
}

var sensitivities = []Sensitivity{Public, Internal, Confidential, Restricted}

// Metadata describes an artifact. It is never encrypted.
type Metadata struct {
	// ID, Bytes, EncryptionKeyID and Digest are set by the Store. A caller of Put may
	// give the ID that a pointer to the content already has.
	ID string `json:"artifact_id"`
	// ThreadID is the thread of the content, and the scope of its id. It is required.
	ThreadID string `json:"thread_id"`
	// TenantID is the owner; "" where there are no tenants.
	TenantID string `json:"tenant_id,omitempty"`
	// CreatedAt is set by the Store if it is zero.
	CreatedAt time.Time `json:"created_at"`
	// TTLSeconds is how long the content may be read; 0 is forever.
	TTLSeconds int `json:"ttl_seconds,omitempty"`
	// EncryptionKeyID is the data key that the content is encrypted with; "" if it is
	// not encrypted.
	EncryptionKeyID string      `json:"encryption_key_id,omitempty"`
	Sensitivity     Sensitivity `json:"sensitivity"`
	// Digest is the SHA-256 of unencrypted content whose id is not IDOf of it, as after
	// Restore from a store with keyed ids; else it is "". A Store with a keyring does
	// not trust it.
	Digest string `json:"digest,omitempty"`

	// MessageIDs are the messages that have the content.
	MessageIDs []thread.ID `json:"message_ids,omitempty"`
	// Tool is the tool whose result the content is, or "".
	Tool string `json:"tool,omitempty"`
	Turn int    `json:"turn"`
	// Bytes is the length of the content.
	Bytes int `json:"bytes"`
	// MediaType defaults to "text/plain; charset=utf-8".
	MediaType string `json:"media_type"`
}

const defaultMediaType = "text/plain; charset=utf-8"

// maxTTL is 1,000 years: no sum of times overflows.
const maxTTL = 1000 * 366 * 24 * 60 * 60

// Permits reports whether the requester's clearance allows to read the content. The error
// wraps ErrForbidden. It looks neither at the tenant nor at the time.
func (m Metadata) Permits(who Requester) error {
	if m.Sensitivity.above(who.Clearance) {
		return fmt.Errorf("it is %s, and the requester may read up to %s: %w", m.Sensitivity, who.Clearance, ErrForbidden)
	}
	return nil
}

// Expires returns when the content expires. It is false if it never does.
func (m Metadata) Expires() (time.Time, bool) {
	if m.TTLSeconds <= 0 {
		return time.Time{}, false
	}
	seconds := m.CreatedAt.Unix() + int64(min(m.TTLSeconds, maxTTL))
	return time.Unix(seconds, int64(m.CreatedAt.Nanosecond())).UTC(), true
}

func (m Metadata) expired(now time.Time) bool {
	at, ok := m.Expires()
	return ok && !now.Before(at)
}

// same reports whether two have the same JSON.
func (m *Metadata) same(other Metadata) bool {
	a, errA := json.Marshal(m) // of nil: null
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// complete fills in defaults and refuses invalid values.
func (m Metadata) complete(content string, now time.Time) (Metadata, error) {
	if m.ThreadID == "" {
		return m, errors.New("metadata has no thread id")
	}
	if m.TTLSeconds < 0 || m.TTLSeconds > maxTTL {
		return m, fmt.Errorf("time to live of %d seconds is not between 0 (forever) and %d", m.TTLSeconds, maxTTL)
	}
	m.Sensitivity = cmp.Or(m.Sensitivity, Internal)
	if !slices.Contains(sensitivities, m.Sensitivity) {
		return m, fmt.Errorf("sensitivity %q is not one of %v", m.Sensitivity, sensitivities)
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = now
	}
	m.CreatedAt = m.CreatedAt.UTC().Round(0)
	m.MediaType = cmp.Or(m.MediaType, defaultMediaType)
	m.Bytes, m.EncryptionKeyID, m.Digest = len(content), "", ""
	m.MessageIDs = slices.Clone(m.MessageIDs)
	return m, nil
}

// merge combines the metadata of two Puts of the same content: all messages, the longer
// life, the stricter sensitivity. It reports whether m has changed.
func (m Metadata) merge(other Metadata) (Metadata, bool) {
	changed := false
	ids := slices.Clone(m.MessageIDs)
	for _, id := range other.MessageIDs {
		if !slices.Contains(ids, id) {
			ids, changed = append(ids, id), true
		}
	}
	m.MessageIDs = ids
	if slices.Index(sensitivities, other.Sensitivity) > slices.Index(sensitivities, m.Sensitivity) {
		m.Sensitivity, changed = other.Sensitivity, true
	}
	mine, mineEnds := m.Expires()
	theirs, theirsEnds := other.Expires()
	switch {
	case mineEnds && !theirsEnds:
		m.TTLSeconds, changed = 0, true
	case mineEnds && theirsEnds && theirs.After(mine):
		m.TTLSeconds, changed = m.TTLSeconds+int((theirs.Sub(mine)+time.Second-1)/time.Second), true
	}
	return m, changed
}

var (
	// ErrNotFound says that the requester's tenant has no such artifact. Whether
	// another tenant has it is not told.
	ErrNotFound = errors.New("no such artifact")
	// ErrExpired says that the artifact is past its time to live.
	ErrExpired = errors.New("artifact has expired")
	// ErrTooLarge says that content exceeds Options.MaxBytes.
	ErrTooLarge = errors.New("content is too large to be stored")
	// ErrCorrupt says that a stored record is not as it was written.
	ErrCorrupt = errors.New("stored artifact is damaged")
	// ErrSealed says that content is encrypted and could not be opened. The error of
	// the keyring, if there is one, is wrapped with it.
	ErrSealed = errors.New("artifact is encrypted and does not open")
	// ErrConflict says that other content is stored under the id.
	ErrConflict = errors.New("another content has this id")
	// ErrForbidden says that the artifact is more sensitive than the requester
	// may read.
	ErrForbidden = errors.New("artifact is too sensitive for the requester")
)

// Backend stores records: metadata and bytes under a tenant and an id. Two tenants may
// have the same id. All methods are safe for concurrent use. Package artifacttest tests
// implementations.
type Backend interface {
	// Put writes a record, or replaces the one of the same tenant and id. It does
	// nothing if the condition refuses the stored record, so that no process
	// overwrites what it has not seen. When Put has returned, the record survives a
	// crash if the backend is durable; no reader ever sees half of a record.
	Put(ctx context.Context, m Metadata, content []byte, c Condition) (done bool, err error)
	// Get returns a record. The error wraps ErrNotFound, or ErrCorrupt if the record
	// is damaged.
	Get(ctx context.Context, tenant, id string) (Metadata, []byte, error)
	// List yields the metadata of the records that match, ordered by id. A record that
	// cannot be read is yielded as an error, with its id in the metadata if that is
	// known, and the listing goes on.
	List(ctx context.Context, f Filter) iter.Seq2[Metadata, error]
	// Delete removes a record if the condition admits the stored one. A record that
	// does not exist is not an error.
	Delete(ctx context.Context, tenant, id string, c Condition) (done bool, err error)
}

// Condition decides from the stored record whether it may be replaced or deleted. It
// gets nil if there is no record, or none that can be read. A nil Condition is always
// true.
type Condition func(stored *Metadata) bool

// Filter selects records of one tenant.
type Filter struct {
	TenantID string
	// ThreadID selects the records of one thread; "" selects all.
	ThreadID string
	// Prefix selects ids that begin with it; "" selects all.
	Prefix string
}
