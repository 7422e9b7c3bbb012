package artifact

import (
	"fmt"
	"testing"
	"time"
)

// TestBucketsGo: requesters that were quiet for long take no room.
func TestBucketsGo(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := &limiter{limits: Limits{ReadsPerMinute: 60}, now: func() time.Time { return now }, buckets: map[caller]*buckets{}}
	for n := range 3 * manyBuckets {
		if err := l.admit(Requester{ID: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Millisecond)
	}
	if len(l.buckets) > manyBuckets {
		t.Errorf("%d buckets are held", len(l.buckets))
	}
}
