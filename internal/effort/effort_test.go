package effort_test

import (
	"context"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
)

// TestSpend: an analysis may do work in proportion to its input, and no more, however it is asked
// for.
func TestSpend(t *testing.T) {
	const bytes = 1 << 20
	did := 0
	for b := effort.New(t.Context(), bytes); b.Spend(1000); {
		did += 1000
	}
	if most := 2 * effort.PerByte * bytes; did < effort.PerByte*bytes-1000 || did > most {
		t.Errorf("%d units for %d bytes, want about %d", did, bytes, effort.PerByte*bytes)
	}
	b := effort.New(t.Context(), bytes)
	if b.Spend(1 << 60) {
		t.Error("more than all of it was allowed at once")
	}
	if b.Spend(1 << 20) {
		t.Error("it goes on after it was over")
	}
	if !b.Live(1 << 60) {
		t.Error("what goes over the input once was stopped")
	}
}

// TestCanceled: once the context is done, work ends within a few thousand units.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := effort.New(ctx, 1<<30)
	if !b.Live(1) || !b.Spend(1) {
		t.Fatal("it ended before its context")
	}
	cancel()
	for n := 0; b.Live(1); n++ {
		if n > 1<<20 {
			t.Fatal("the context was not looked at in a million units")
		}
	}
	if b.Spend(1) {
		t.Error("it goes on after its context is done")
	}
}
