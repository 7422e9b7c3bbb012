package canonjson

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// Digest is a short name for several texts together.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		io.WriteString(h, part)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
