package gemini

import (
	"fmt"
	"hash/fnv"
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

// plainName reports whether every version of the API accepts a function name:
// a letter or underscore, then letters, digits, underscores, dots and dashes.
func plainName(name string) bool {
	if name == "" || len(name) > nameLength {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !nameChar(name[i], i == 0) {
			return false
		}
	}
	return true
}

// wideName reports whether the newest version of the API accepts a name.
func wideName(name string) bool {
	if name == "" || len(name) > wideLength {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !nameChar(name[i], i == 0) && (i == 0 || name[i] != ':') {
			return false
		}
	}
	return true
}

// functionName makes a tool's name fit. A name that had to change ends with a
// hash of the original, so that different tools stay different; the same tool
// gets the same name in its declaration, its calls and its results.
func functionName(name string) string {
	if plainName(name) {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	tail := fmt.Sprintf("_%08x", h.Sum32())
	b := make([]byte, 0, nameLength)
	for i := 0; i < len(name) && len(b) < nameLength-len(tail); i++ {
		c := name[i]
		if len(b) == 0 && !nameChar(c, true) {
			b = append(b, '_')
			if !nameChar(c, false) {
				continue
			}
		}
		if !nameChar(c, false) {
			c = '_'
		}
		b = append(b, c)
	}
	if len(b) == 0 {
		b = append(b, '_')
	}
	if len(b) > nameLength-len(tail) {
		b = b[:nameLength-len(tail)]
	}
	return string(b) + tail
}
