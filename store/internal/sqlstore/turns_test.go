package sqlstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// TestTurns: tenants take turns however many wait of one, each tenant's go in their
// order, who leaves is not waited for, and nothing is left of them.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all writeQueue
		first, err := all.take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		type went struct {
			who string
			end func()
		}
		on := make(chan went, 1)
		wait := func(ctx context.Context, tenant, who string) {
			go func() {
				end, err := all.take(ctx, tenant)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				on <- went{who, end}
			}()
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		wait(t.Context(), "a", "a1")
		wait(gone, "a", "a, who leaves")
		wait(t.Context(), "a", "a2")
		wait(t.Context(), "a", "a3")
		wait(gone, "d", "d, who leaves")
		wait(t.Context(), "b", "b1")
		wait(t.Context(), "c", "c1")
		wait(t.Context(), "b", "b2")
		leave()
		synctest.Wait()
		if len(on) != 0 {
			t.Fatal("somebody goes on beside the first")
		}
		var order []string
		for end := first; len(order) < 6; {
			end()
			synctest.Wait()
			if len(on) != 1 {
				t.Fatalf("after %q %d go on", order, len(on))
			}
			w := <-on
			order, end = append(order, w.who), w.end
			if len(order) == 6 {
				end()
			}
		}
		if want := []string{"a1", "b1", "c1", "a2", "b2", "a3"}; !slices.Equal(order, want) {
			t.Errorf("%q, want %q", order, want)
		}
		if all.taken || len(all.line)+len(all.waiting) > 0 {
			t.Errorf("left are %v, %q, %v", all.taken, all.line, all.waiting)
		}
		if _, err := all.take(gone, "a"); err != nil {
			t.Errorf("nobody has to wait: %v", err) // the database tells the one who left
		}
	})
}
