package daemon

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
)

// TestPlansUncopied: a step gets the same plan as the one before it, so that what was
// rendered under it is not rendered again.
func TestPlansUncopied(t *testing.T) {
	s := &store.Memory{}
	if _, err := s.Commit(t.Context(), "t", 0, store.Commit{Plan: &plan.Plan{ThreadID: "t"}}); err != nil {
		t.Fatal(err)
	}
	told := watchedPlans{Plans: s}
	one, _, err := told.Current(t.Context(), "t")
	two, _, _ := told.Current(t.Context(), "t")
	if err != nil || one == nil || one != two {
		t.Fatalf("got %p and %p, error %v", one, two, err)
	}
}
