package rawjson

import (
	"errors"
	"fmt"
	"math/bits"
)

// MaxDepth is how deep a document from outside may nest: requests, arguments and results of
// tools, answers, transcripts, stored data. It is the limit of Python's JSON reader and a
// tenth of encoding/json's; real requests stay below 30. A higher limit would only cost
// time, because reading a document level by level scans the rest of it at each level.
const MaxDepth = 1000

var (
	// ErrDepth is wrapped by errors about a document that nests too deep.
	ErrDepth = errors.New("the JSON nests too deep")
	// ErrSyntax is wrapped by errors about text that is not one JSON document.
	ErrSyntax = errors.New("not valid JSON")
)

// text is a document in memory: checking either form copies nothing.
type text interface{ ~string | ~[]byte }

// Check reports what is wrong with a text that should be one JSON document, and where. A
// text that passes is safe for readers that recurse.
func Check[T text](doc T) error {
	at, err := check(doc, MaxDepth)
	switch err {
	case nil:
		return nil
	case ErrDepth:
		return fmt.Errorf("%w: over %d levels at byte %d%s", ErrDepth, MaxDepth, at, deepPath(string(doc)))
	}
	return fmt.Errorf("%w at byte %d", ErrSyntax, at)
}

// Valid reports whether a text is one JSON document that nests at most MaxDepth deep. It
// allocates nothing.
func Valid[T text](doc T) bool {
	_, err := check(doc, MaxDepth)
	return err == nil
}

// TooDeep reports whether a document nests deeper than levels, or than MaxDepth. Invalid
// JSON counts up to where it breaks.
func TooDeep[T text](doc T, levels int) bool {
	_, err := check(doc, min(levels, MaxDepth))
	return err == ErrDepth
}

// check reads a document in a loop, without recursion. It returns ErrDepth or ErrSyntax
// unwrapped, and the byte where it found that.
func check[T text](doc T, levels int) (int, error) {
	// One bit for each open bracket: 1 for an object.
	var objects [MaxDepth/64 + 1]uint64
	depth, object := 0, false
	i := skipSpace(doc, 0)
	for {
		// Here a value begins.
		if i >= len(doc) {
			return i, ErrSyntax
		}
		ok := true
		switch c := doc[i]; c {
		case '{', '[':
			if depth == levels {
				return i, ErrDepth
			}
			object = c == '{'
			if bit := uint64(1) << (depth % 64); object {
				objects[depth/64] |= bit
			} else {
				objects[depth/64] &^= bit
			}
			depth++
			i = skipSpace(doc, i+1)
			if i < len(doc) && doc[i] == c+2 { // the bracket that closes it
				break // the loop below closes it like any other
			}
			if object {
				if i, ok = skipName(doc, i); !ok {
					return i, ErrSyntax
				}
			}
			continue
		case '"':
			i, ok = skipString(doc, i+1)
		case 't':
			i, ok = skipWord(doc, i, "true")
		case 'f':
			i, ok = skipWord(doc, i, "false")
		case 'n':
			i, ok = skipWord(doc, i, "null")
		default:
			i, ok = skipNumber(doc, i)
		}
		if !ok {
			return i, ErrSyntax
		}
		// Here a value has ended, and perhaps the arrays and objects around it.
		for {
			if i = skipSpace(doc, i); depth == 0 {
				if i < len(doc) {
					return i, ErrSyntax
				}
				return i, nil
			}
			if i >= len(doc) {
				return i, ErrSyntax
			}
			if doc[i] == ',' {
				if i = skipSpace(doc, i+1); object {
					if i, ok = skipName(doc, i); !ok {
						return i, ErrSyntax
					}
				}
				break
			}
			if object && doc[i] != '}' || !object && doc[i] != ']' {
				return i, ErrSyntax
			}
			i++
			if depth--; depth > 0 {
				object = objects[(depth-1)/64]>>((depth-1)%64)&1 == 1
			}
		}
	}
}

// skipName steps over the name of a member and its colon, to its value.
func skipName[T text](doc T, i int) (int, bool) {
	if i >= len(doc) || doc[i] != '"' {
		return i, false
	}
	i, ok := skipString(doc, i+1)
	if i = skipSpace(doc, i); !ok || i >= len(doc) || doc[i] != ':' {
		return i, false
	}
	return skipSpace(doc, i+1), true
}

// skipString steps over the rest of a string, which begins behind its quote.
func skipString[T text](doc T, i int) (int, bool) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	// Most strings are names and end soon.
	for end := min(i+8, len(doc)); i < end && doc[i] >= ' ' && doc[i] != '\\'; i++ {
		if doc[i] == '"' {
			return i + 1, true
		}
	}
	for {
		// Eight bytes at once: found has the top bit of each byte that a string cannot
		// hold unescaped. A subtraction that goes below zero borrows from that bit. The
		// borrow may spoil later bytes, but only the first one counts.
		for i+8 <= len(doc) {
			s := doc[i : i+8]
			x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
				uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
			quote, slash := x^ones*'"', x^ones*'\\'
			found := ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
			if found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		if i >= len(doc) {
			return i, false
		}
		switch c := doc[i]; {
		case c == '"':
			return i + 1, true
		case c < ' ':
			return i, false
		case c != '\\':
			i++
			continue
		}
		if i++; i >= len(doc) {
			return i, false
		}
		switch doc[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i++
		case 'u':
			for range 4 {
				if i++; i >= len(doc) || !hexadecimal(doc[i]) {
					return i, false
				}
			}
			i++
		default:
			return i, false
		}
	}
}

func hexadecimal(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func skipWord[T text](doc T, i int, want string) (int, bool) {
	if len(doc)-i < len(want) || string(doc[i:i+len(want)]) != want {
		return i, false
	}
	return i + len(want), true
}

// skipNumber steps over a number, which has no plus and no leading zeros.
func skipNumber[T text](doc T, i int) (int, bool) {
	if i < len(doc) && doc[i] == '-' {
		i++
	}
	from := i
	if i = skipDigits(doc, i); i == from || doc[from] == '0' && i > from+1 {
		return from, false
	}
	if i < len(doc) && doc[i] == '.' {
		from = i + 1
		if i = skipDigits(doc, from); i == from {
			return i, false
		}
	}
	if i < len(doc) && doc[i]|0x20 == 'e' {
		from = i + 1
		if from < len(doc) && (doc[from] == '+' || doc[from] == '-') {
			from++
		}
		if i = skipDigits(doc, from); i == from {
			return i, false
		}
	}
	return i, true
}

func skipDigits[T text](doc T, i int) int {
	for i < len(doc) && '0' <= doc[i] && doc[i] <= '9' {
		i++
	}
	return i
}

func skipSpace[T text](doc T, i int) int {
	for i < len(doc) && doc[i] <= ' ' && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	return i
}
