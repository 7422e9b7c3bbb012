// Package artifact stores content that was taken out of prompts, so that it can be
// read back.
//
// A Store gives all guarantees, whatever its Backend is: ids that follow from the
// content, one copy of equal content, expiry, separate tenants, classes of
// sensitivity, limits of size and rate, encryption if it has a keyring, and a check
// that content comes back as it was stored. A Backend only keeps records; package
// artifacttest tests one.
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
