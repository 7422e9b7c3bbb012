package codec

import (
	"crypto/sha256"
	"encoding/hex"
)

// IsPlain reports whether s has 1 to most of the characters a-z, A-Z, 0-9, _ and -.
func IsPlain(s string, most int) bool {
	for i := range len(s) {
		if !PlainByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= most
}

// PlainByte reports whether c is one of a-z, A-Z, 0-9, _ and -.
func PlainByte(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// FitPlainName is FitName for APIs that allow PlainByte anywhere in a name.
func FitPlainName(name string, most int) string {
	return FitName(name, most, func(c byte, _ bool) bool { return PlainByte(c) })
}

// FitName returns a tool's name in the bytes and the length that an API allows; allowed
// is asked for each byte, and whether it comes first. A name that has to change ends in a
// hash of itself, so that two tools never share a name, and one tool has the same name in
// its declaration, its calls and its results.
func FitName(name string, most int, allowed func(c byte, first bool) bool) string {
	b := []byte(name)
	fits := name != "" && len(name) <= most
	for i, c := range b {
		if !allowed(c, i == 0) {
			fits = false
		}
		if !allowed(c, false) {
			b[i] = '_'
		}
	}
	if fits {
		return name
	}
	if len(b) == 0 || !allowed(b[0], true) {
		b = append([]byte{'_'}, b...)
	}
	return string(b[:min(len(b), most-9)]) + "_" + Hash(name, 4)
}

// Hash returns so many bytes of a hash of s, in hexadecimal digits.
func Hash(s string, bytes int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:bytes])
}
