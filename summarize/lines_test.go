package summarize

import "testing"

// TestKeptByPrograms: a bare path of what programs keep for themselves is no line that a step needs.
func TestKeptByPrograms(t *testing.T) {
	for line, want := range map[string]int{
		"./web/node_modules/qs/index.js": 0, ".git/objects/2d": 0, "./.github/workflows/ci.yml": 1, "edited web/node_modules/qs/index.js": 1, "./web/src/index.js": 1,
	} {
		if got := appendPieces(nil, line, 1, 0, true, false); len(got) != want {
			t.Errorf("%s: %d pieces, want %d", line, len(got), want)
		}
	}
}
