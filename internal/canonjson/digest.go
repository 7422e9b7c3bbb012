package canonjson

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest is a short name for several texts together.
func Digest(parts ...string) string {
	var room [512]byte
	all := room[:0]
	for _, part := range parts {
		all = append(append(all, part...), 0)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:12])
}
