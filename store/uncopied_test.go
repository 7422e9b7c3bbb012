package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
)

var errOverridden = errors.New("overridden")

type overriding struct{ *store.Memory }

func (overriding) Current(context.Context, string) (*plan.Plan, int, error) {
	return nil, 0, errOverridden
}

// TestCurrentUncopied: the engine gets the plan itself, and a store that embeds
// another and answers Current by itself is asked.
func TestCurrentUncopied(t *testing.T) {
	s := &store.Memory{}
	if _, err := s.Commit(t.Context(), "t", 0, store.Commit{Plan: &plan.Plan{ThreadID: "t"}}); err != nil {
		t.Fatal(err)
	}
	one, _, err := store.CurrentUncopied(t.Context(), s, "t", uncopied.Key{})
	two, _, _ := store.CurrentUncopied(t.Context(), s, "t", uncopied.Key{})
	if err != nil || one == nil || one != two {
		t.Errorf("%p, %p, %v", one, two, err)
	}
	if _, _, err := store.CurrentUncopied(t.Context(), overriding{s}, "t", uncopied.Key{}); !errors.Is(err, errOverridden) {
		t.Error("the embedded store was asked")
	}
}
