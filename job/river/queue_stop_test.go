package river

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a client that does not stop until it is released.
type stuck struct {
	client
	released chan struct{}
}

func (s stuck) Stop(context.Context) error { <-s.released; return nil }

// TestStopOfAStuckClient: Stop waits for jobs as long as they run, and soon no longer if River
// itself does not end.
func TestStopOfAStuckClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		defer close(released)
		q := &Queue{client: stuck{released: released}}
		const work = time.Hour
		q.running.Add(1)
		time.AfterFunc(work, func() { q.running.Add(-1) })
		began := time.Now()
		if err := q.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < work || took > work+2*lastGrace {
			t.Errorf("it took %v; the job ran for %v", took, work)
		}
	})
}
