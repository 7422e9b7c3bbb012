// Package artifact is content that was taken out of prompts and can be read
// back: its ids, what is known about it, and the store that keeps it (seed A,
// "Security Considerations for ArtifactStore"; A20).
//
// A Store holds every guarantee once, whatever keeps the bytes: ids that follow
// from the content, one copy of the same content, expiry, tenants that never
// see each other, classes of sensitivity, limits of size and rate, encryption
// where a keyring is given, and a check that what comes back is what was put in.
// A Backend only keeps records; package artifacttest proves one.
//
//	s := artifact.NewStore(mem.New(), nil)
//	id, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", Tool: "Bash"}, output)
//	_, content, err := s.Get(ctx, artifact.Requester{}, id)
package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
)

// idPrefix begins every artifact id, so that one is told from a message id.
const idPrefix = "art_"

// idDigits is how many hexadecimal digits follow the prefix.
const idDigits = 16

// IDOf names content by what it is and where it belongs: the same content of
// the same scope (a thread) is one artifact. Who knows the content can know the
// id; see Store.Namer for ids that cannot be guessed.
func IDOf(scope, content string) string {
	h := sha256.New()
	h.Write([]byte(scope))
	h.Write([]byte{0})
	h.Write([]byte(content))
	return idFrom(h)
}

func idFrom(h hash.Hash) string { return idPrefix + hex.EncodeToString(h.Sum(nil)[:idDigits/2]) }

// IsID reports whether s has the form that IDOf gives: "art_" and 16 lower-case
// hexadecimal digits. Such an id is safe as a file name.
func IsID(s string) bool {
	digits, ok := strings.CutPrefix(s, idPrefix)
	return ok && len(digits) == idDigits && strings.Trim(digits, "0123456789abcdef") == ""
}
