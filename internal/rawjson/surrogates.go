package rawjson

import "bytes"

// MendSurrogates returns a valid document in which every escape of half a surrogate pair is that of
// U+FFFD, as providers refuse the half, and how many there were. Without any it is the same slice.
func MendSurrogates(doc []byte) ([]byte, int) {
	out, n := doc, 0
	for i := 0; i < len(doc); i++ {
		next := bytes.IndexByte(doc[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		switch unit := escapedUnit(doc[i:]); {
		case unit < 0xD800 || unit > 0xDFFF:
			i++ // what is escaped is no backslash of its own
		case unit < 0xDC00 && isLow(escapedUnit(doc[i+6:])):
			i += 11
		default:
			if n == 0 {
				out = bytes.Clone(doc)
			}
			n++
			copy(out[i:], `\ufffd`)
			i += 5
		}
	}
	return out, n
}

func isLow(unit int) bool { return unit >= 0xDC00 && unit <= 0xDFFF }

// escapedUnit returns the code unit that an escape at the beginning of a text stands for, -1 for none.
func escapedUnit(s []byte) (unit int) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	for _, c := range s[2:6] {
		digit := bytes.IndexByte([]byte("0123456789abcdef"), c|0x20)
		if c < 'A' {
			digit = int(c) - '0'
		}
		if digit < 0 || digit > 15 {
			return -1
		}
		unit = unit<<4 | digit
	}
	return unit
}
