package gemini

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// nameLength is the longest function name that every version of the API takes,
// in characters; the newest takes wideLength and colons besides.
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

// functionName makes a tool's name fit. A name that had to change ends with a
// hash of the original, so that different tools stay different; the same tool
// gets the same name in its declaration, its calls and its results.
func functionName(name string) string {
	if isPlainName(name) {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	tail := fmt.Sprintf("_%08x", h.Sum32())
	b := []byte(name)
	for i, c := range b {
		if !nameChar(c, false) {
			b[i] = '_'
		}
	}
	if len(b) == 0 || !nameChar(b[0], true) {
		b = append([]byte{'_'}, b...)
	}
	return string(b[:min(len(b), nameLength-len(tail))]) + tail
}
