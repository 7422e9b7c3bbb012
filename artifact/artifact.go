// Package artifact is content that was taken out of prompts and can be read
// back: its ids and what is known about it.
package artifact

import (
	"crypto/sha256"
	"encoding/hex"
)

// IDOf names content by what it is and where it belongs: the same content of
// the same scope (a thread) is one artifact.
func IDOf(scope, content string) string {
	h := sha256.New()
	h.Write([]byte(scope))
	h.Write([]byte{0})
	h.Write([]byte(content))
	return "art_" + hex.EncodeToString(h.Sum(nil)[:8])
}
