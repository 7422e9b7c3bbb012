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

// TestKeptByPrograms: a bare path of what programs keep for themselves is no line that a step needs.
func TestKeptByPrograms(t *testing.T) {
	for line, want := range map[string]int{
		"./web/node_modules/qs/index.js": 0, ".git/objects/2d": 0, "./.github/workflows/ci.yml": 1, "edited web/node_modules/qs/index.js": 1, "./web/src/index.js": 1,
	} {
		if got := appendPieces(nil, line, 1, 0, true); len(got) != want {
			t.Errorf("%s: %d pieces, want %d", line, len(got), want)
		}
	}
}
