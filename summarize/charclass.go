package summarize

import "strings"

// set makes a set of the words of a list.
func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// What a byte is to those who look for words and identifiers.
const (
	sep   = iota // ends a word
	alpha        // lower case letter, or any letter beyond ASCII
	upper
	digit
	joint // inside an identifier, not at its ends: . / : - @ # % + ~ $ \
	under
)

var charClass = func() (t [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		t[c] = alpha
	}
	for c := 'A'; c <= 'Z'; c++ {
		t[c] = upper
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = digit
	}
	for c := 0x80; c < 256; c++ {
		t[c] = alpha
	}
	t[0xe2] = sep // arrows, quotes, boxes, dashes
	for _, c := range "./:-@#%+~$\\" {
		t[c] = joint
	}
	t['_'] = under
	return t
}()
