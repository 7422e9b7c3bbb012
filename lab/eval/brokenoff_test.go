package eval

import (
	"context"
	"errors"
	"testing"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// TestBrokenOff: who breaks a run off gets what was measured so far, and is told
// that it is not all.
func TestBrokenOff(t *testing.T) {
	counter := counterOf(t)
	set, large := &references.Set{Counter: counter}, &references.Set{Counter: counter}
	for range 4 {
		set.Sessions = append(set.Sessions, worked(t, counter, 6).Session)
		large.Sessions = append(large.Sessions, worked(t, counter, 50).Session)
	}
	after := func(n int) (context.Context, references.Progress) {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		if n == 0 {
			cancel()
		}
		return ctx, func(done, total int) {
			if total != 4 {
				t.Errorf("%d conversations, want 4", total)
			}
			if done >= n {
				cancel()
			}
		}
	}
	for _, n := range []int{0, 1} {
		ctx, progress := after(n)
		r, err := Run(ctx, set, &Options{Budgets: []string{"4k"}, Contenders: []string{references.AutoName}, Progress: progress})
		if r == nil || !errors.Is(err, context.Canceled) || n == 0 && r.Left != 4 || n == 1 && (r.Left == 0 || r.Left == 4) {
			t.Errorf("recall after %d: %v, %+v", n, err, r)
		}
		ctx, progress = after(n)
		c, err := Cost(ctx, large, &CostOptions{Contenders: []string{noneName}, Progress: progress})
		if !errors.Is(err, context.Canceled) || (c == nil) != (n == 0) || c != nil && (c.Sessions == 0 || c.Sessions+c.Left != 4) {
			t.Errorf("cost after %d: %v, %+v", n, err, c)
		}
		ctx, progress = after(n)
		v, err := Validity(ctx, set, &ValidityOptions{Progress: progress})
		if v == nil || !errors.Is(err, context.Canceled) || v.Sessions+v.Left != 4 || n == 1 && (v.Sessions == 0 || len(v.Rows) != 28) {
			t.Errorf("validity after %d: %v, %+v", n, err, v)
		}
	}
}
