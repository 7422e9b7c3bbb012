package gemini

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// nameLength is the length limit of function names in every version of the API, in
// characters; the newest allows wideLength, and colons.
const (
	nameLength = 64
	wideLength = 128
)

func nameChar(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		return true
	case '0' <= c && c <= '9', c == '.', c == '-':
		return !first
	}
	return false
}

// isPlainName reports whether every version of the API accepts a function name:
// a letter or underscore, then letters, digits, underscores, dots and dashes.
func isPlainName(name string) bool { return isName(name, nameLength) }

// isWideName reports whether the newest version of the API accepts a name.
func isWideName(name string) bool {
	return !strings.HasPrefix(name, ":") && len(name) <= wideLength && isName(strings.ReplaceAll(name, ":", "_"), wideLength)
}

func isName(name string, limit int) bool {
	for i := range len(name) {
		if !nameChar(name[i], i == 0) {
			return false
		}
	}
	return name != "" && len(name) <= limit
}

// functionName returns a tool's name as every version of the API accepts it.
func functionName(name string) string { return codec.FitName(name, nameLength, nameChar) }
