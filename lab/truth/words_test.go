package truth

import (
	"strings"
	"testing"
)

// TestLinesOfMarks: a line without words stands in so many places that it tells none.
func TestLinesOfMarks(t *testing.T) {
	text := normal(strings.Repeat("+\n", 600) + "one diff\n+\nanother diff\n" + strings.Repeat("more\n", 3) + "the end")
	for quoted, want := range map[string]int{"one diff\n+\nanother diff": 0, "one diff\n+\nthe end": 1, "one diff\n…\n+\nthe end": 0} {
		if gaps, _, ok := inOrder(text, quotedLines(quoted)); !ok || gaps != want {
			t.Errorf("%q: %d gaps, %t", quoted, gaps, ok)
		}
	}
}
