package summarize

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReasonComments(t *testing.T) {
	const file = `     1→package a
     2→
     3→// Write stores the row. It must hold the lock,
     4→// since two writers share the page.
     5→func Write() {}
     6→
     7→// Read returns the row that has the id, or nothing.
     8→func Read() {}
     9→
    10→// must
    11→var x = 1 // because
`
	got := slices.Sorted(maps.Keys(reasonComments(file)))
	if diff := cmp.Diff([]int{2, 3}, got); diff != "" {
		t.Errorf("lines of comments that give a reason, counted from 0 (-want +got):\n%s", diff)
	}
	worth := worthOfCode(file)
	for _, c := range []struct {
		line int
		text string
		want float32
	}{
		{2, "// Write stores the row. It must hold the lock,", reasonWorth},
		{4, "func Write() {}", definedWorth},
		{6, "// Read returns the row that has the id, or nothing.", 0},
	} {
		if got := worth(c.line, c.text); got != c.want {
			t.Errorf("line %d is worth %v, want %v", c.line, got, c.want)
		}
	}
}
