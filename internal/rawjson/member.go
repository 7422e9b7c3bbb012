package rawjson

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Member finds the value of a member in a document that is one valid JSON object;
// where a name stands twice the last one counts. The values are stepped over, not
// read: blocks can hold megabytes of text. There is no such member where ok is
// false.
func Member(doc, name string) (from, to int, ok bool) {
	i := space(doc, 0)
	if i >= len(doc) || doc[i] != '{' {
		return 0, 0, false
	}
	for i = space(doc, i+1); i < len(doc) && doc[i] == '"'; {
		end := stringEnd(doc, i)
		key := doc[i:min(end+1, len(doc))]
		begin := space(doc, end+1)
		if begin >= len(doc) || doc[begin] != ':' {
			return 0, 0, false
		}
		begin = space(doc, begin+1)
		i = valueEnd(doc, begin)
		if named(key, name) {
			from, to, ok = begin, i, true
		}
		if i = space(doc, i); i < len(doc) && doc[i] == ',' {
			i = space(doc, i+1)
		}
	}
	return from, to, ok
}

// named reports whether a key, with its quotes, is a name.
func named(key, name string) bool {
	if len(key) == len(name)+2 && key[1:len(key)-1] == name {
		return true
	}
	for i := range len(key) {
		if key[i] == '\\' {
			return gjson.Parse(key).Str == name
		}
	}
	return false
}

// space returns the position of the first byte from i on that is no white space.
func space[T text](doc T, i int) int {
	for i < len(doc) && doc[i] <= ' ' && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	return i
}

// valueEnd returns the position behind the value that begins at i.
func valueEnd(doc string, i int) int {
	depth := 0
	for ; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			if i = stringEnd(doc, i); depth == 0 {
				return min(i+1, len(doc))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i // the end of the object around a number or a word
			}
			if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// stringEnd returns the position of the quote that closes the string opened at
// i, or the end of doc.
func stringEnd(doc string, i int) int {
	for i++; i < len(doc); i++ {
		n := strings.IndexByte(doc[i:], '"')
		if n < 0 {
			return len(doc)
		}
		i += n
		slashes := 0
		for doc[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return len(doc)
}
