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

// Sensitivity says how far content may go (A20). The zero value is Internal.
type Sensitivity string

// The classes of sensitivity, the least first.
const (
	Public       Sensitivity = "public"
	Internal     Sensitivity = "internal"
	Confidential Sensitivity = "confidential"
	Restricted   Sensitivity = "restricted"
)

// above reports whether s is more sensitive than what the clearance allows. What
// is no class is above all when it is stored, and allows nothing.
func (s Sensitivity) above(clearance Sensitivity) bool {
	if clearance == "" {
		return false
	}
	rank := slices.Index(sensitivities, s)
	return rank < 0 || rank > slices.Index(sensitivities, clearance)
}

var sensitivities = []Sensitivity{Public, Internal, Confidential, Restricted}

// Metadata is what is known about an artifact without reading it. Its JSON
// names are those of seed A.
type Metadata struct {
	// ID, Bytes, EncryptionKeyID and Digest are set by the Store. To Put, ID may be given:
	// the one that a pointer to the content has already.
	ID string `json:"artifact_id"`
	// ThreadID is the thread that the content comes from; it is the scope of
	// the id. It is required.
	ThreadID string `json:"thread_id"`
	// TenantID is whose content it is; "" on a machine of one owner.
	TenantID string `json:"tenant_id,omitempty"`
	// CreatedAt is set by the Store when it is zero.
	CreatedAt time.Time `json:"created_at"`
	// TTLSeconds is how long the content may be read; 0 is for ever.
	TTLSeconds int `json:"ttl_seconds,omitempty"`
	// EncryptionKeyID is the tenant's key that sealed the content; "" when it is
	// not encrypted. What is known about it never is.
	EncryptionKeyID string      `json:"encryption_key_id,omitempty"`
	Sensitivity     Sensitivity `json:"sensitivity"`
	// Digest is the SHA-256 of content that is kept in the clear under an id that
	// does not follow from it, as from a store with keyed ids; else it is "". It
	// proves such content only to a Store without keys.
	Digest string `json:"digest,omitempty"`

	// MessageIDs are the messages whose content it is; several when they said
	// the same.
	MessageIDs []thread.ID `json:"message_ids,omitempty"`
	// Tool is the tool that made the content, "" when none did.
	Tool string `json:"tool,omitempty"`
	Turn int    `json:"turn"`
	// Bytes is the length of the content.
	Bytes int `json:"bytes"`
	// MediaType is "text/plain; charset=utf-8" when it is empty.
	MediaType string `json:"media_type"`
}

// defaultMediaType is that of all content which strategies externalize.
const defaultMediaType = "text/plain; charset=utf-8"

// maxTTL bounds TTLSeconds, so that no sum of times overflows: 1,000 years.
const maxTTL = 1000 * 366 * 24 * 60 * 60

// Expires returns the time from which the content may not be read any more; it
// is false when there is none.
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

// same reports whether two say the same, in the form in which they are kept.
func (m Metadata) same(other Metadata) bool {
	a, errA := json.Marshal(m)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// complete fills in what the caller left out and refuses what cannot be kept.
func (m Metadata) complete(content string, now time.Time) (Metadata, error) {
	if m.ThreadID == "" {
		return m, errors.New("metadata has no thread id, which is the scope of the artifact's id")
	}
	if m.TTLSeconds < 0 || m.TTLSeconds > maxTTL {
		return m, fmt.Errorf("time to live of %d seconds is not between 0 (for ever) and %d", m.TTLSeconds, maxTTL)
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

// merge adds to the metadata of an artifact what another caller says of the
// same content: all messages, the longer life, the stricter sensitivity.
// It reports whether anything is new.
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
