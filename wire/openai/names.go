package openai

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxName is the longest name of a function that the provider takes, in characters.
const maxName = 64

// isPlain reports whether s has 1 to limit characters of [a-zA-Z0-9_-].
func isPlain(s string, limit int) bool {
	for i := range len(s) {
		if !isPlainByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= limit
}

func isPlainByte(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// fittedName is the name of a function in the characters and the length that OpenAI
// allows. One that had to change ends in a hash, so that two tools never share it.
func fittedName(name string) string {
	if isPlain(name, maxName) {
		return name
	}
	clean := []byte(name)
	for i, c := range clean {
		if !isPlainByte(c) {
			clean[i] = '_'
		}
	}
	return string(clean[:min(len(clean), maxName-9)]) + "_" + hashName(name, 4)
}

func hashName(s string, bytes int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:bytes])
}
