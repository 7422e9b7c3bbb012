package summarize

import "testing"

// TestBareHits: a line around a hit is kept for what it says, and not for its number.
func TestBareHits(t *testing.T) {
	for line, bare := range map[string]bool{
		"a/b.go-112-}": true, "112-": true, "112-\t}": true, "112-\t// and so": true, "a.go:7:x": true, "7:x": true,
		"a/b.go-112-\treturn parseHeader(name)": false, "112-\treturn parseHeader(name)": false, "a.go:7:the first of its kind": false,
		"12-30 of them": false, "112": false, "-": false, "": false, "a sentence": false,
	} {
		if bareHit(line) != bare {
			t.Errorf("%q: %v", line, !bare)
		}
	}
}
