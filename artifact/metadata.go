package artifact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/thread"
)

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
