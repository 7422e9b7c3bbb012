package sqlstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest/store"
)

// TestWaitForTurn: whoever waits for a turn that nobody gives up hears so after the time for it, and keeps no
// place in the line; one that goes away before hears of that.
func TestWaitForTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q writeQueue
		take := func(ctx context.Context) (func(), error) { return q.take(ctx, "a") }
		end, err := acquire(t.Context(), time.Second, take)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := acquire(t.Context(), time.Second, take); !errors.Is(err, store.ErrUnavailable) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := acquire(short, time.Second, take); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnavailable) {
			t.Error(err)
		}
		end()
		if end, err = acquire(t.Context(), 0, take); err != nil {
			t.Error(err)
		}
		end()
	})
}
