package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// keyBytes is the length of every key: AES-256.
const keyBytes = 32

// Masters are the master keys, newest last: the newest wraps, all unwrap. The zero value
// has none. Printing it shows only ids.
type Masters struct{ list []*master }

type master struct {
	id   string
	aead cipher.AEAD
}

// ParseMasters reads master keys, newest last, separated by white space or commas. Each is
// 32 bytes in hexadecimal or base64. A line that begins with # is a comment. The error
// says which key is invalid, but never contains it.
func ParseMasters(text string) (Masters, error) {
	var ms Masters
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || r == ',' }) {
			n := len(ms.list) + 1
			key, err := decodeKey(word)
			if err != nil {
				return Masters{}, fmt.Errorf("keyring.ParseMasters: master key %d: %w", n, err)
			}
			m := newMaster(key)
			for i, other := range ms.list {
				if other.id == m.id {
					return Masters{}, fmt.Errorf("keyring.ParseMasters: master keys %d and %d are the same", i+1, n)
				}
			}
			ms.list = append(ms.list, m)
		}
	}
	if len(ms.list) == 0 {
		return Masters{}, errors.New("keyring.ParseMasters: there is no master key; `palimpsest keys master` makes one")
	}
	return ms, nil
}

func decodeKey(s string) ([]byte, error) {
	key, err := hex.DecodeString(s)
	if err != nil {
		s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
		key, err = base64.RawStdEncoding.Strict().DecodeString(s)
	}
	if err != nil || len(key) != keyBytes {
		return nil, errors.New("want 32 bytes as 64 hexadecimal digits or in base64") // the cause would show the key
	}
	return key, nil
}

// NewMaster returns a new random master key for ParseMasters.
func NewMaster() string { return hex.EncodeToString(randomBytes(keyBytes)) }

// newMaster derives the id of a key from its hash, so that a key has the same id
// everywhere. A hash of 256 random bits reveals nothing.
func newMaster(key []byte) *master {
	sum := sha256.Sum256(append([]byte("palimpsest master key\x00"), key...))
	return &master{id: "mk-" + hex.EncodeToString(sum[:8]), aead: newAEAD(key)}
}

// IDs returns the ids of the keys, newest last. They are not secret.
func (ms Masters) IDs() []string {
	ids := make([]string, len(ms.list))
	for i, m := range ms.list {
		ids[i] = m.id
	}
	return ids
}

// Format prints the ids of the keys for every verb.
func (ms Masters) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%v", ms.IDs()) }

func (ms Masters) newest() *master { return ms.list[len(ms.list)-1] }

func (ms Masters) byID(id string) (*master, error) {
	for _, m := range ms.list {
		if m.id == id {
			return m, nil
		}
	}
	return nil, fmt.Errorf("it is wrapped by %s, but the master keys are %v: %w", id, ms.IDs(), ErrNoMaster)
}

// newAEAD returns AES-256-GCM; the key must have keyBytes.
func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err == nil {
		var aead cipher.AEAD
		if aead, err = cipher.NewGCM(block); err == nil {
			return aead
		}
	}
	panic(err) // only for keys of another length
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}
