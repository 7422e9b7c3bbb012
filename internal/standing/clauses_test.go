package standing

import (
	"strings"
	"testing"
)

// TestMostClauses: of a message with very many clauses the middle is left out, and what stands before and
// behind it is there, in order.
func TestMostClauses(t *testing.T) {
	got := Clauses("Never touch the lock.\n"+strings.Repeat("a\n", 4*mostClauses)+"Always run the tests.", "Shall I?")
	if len(got) > mostClauses || len(got) < mostClauses/2 || got[0].Text != "Never touch the lock." || got[0].Before != "Shall I?" || got[len(got)-1].Text != "Always run the tests." {
		t.Errorf("%d clauses from %+v to %+v", len(got), got[0], got[len(got)-1])
	}
	for i, c := range got {
		if c.Index != i || c.Count != len(got) || i > 0 && c.From < got[i-1].To {
			t.Fatalf("clause %d: %+v", i, c)
		}
	}
}
