package artifact

import (
	"fmt"
	"testing"
	"time"
)

// TestBucketsGo: of many requesters those that were quiet for longest take no room.
func TestBucketsGo(t *testing.T) {
	l := newLimiter(Limits{ReadsPerMinute: 60}, func() time.Time { return time.Unix(1e9, 0) })
	for n := range 3 * manyBuckets {
		if err := l.admit(Requester{ID: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := l.buckets.Held(); n > manyBuckets {
		t.Errorf("%d buckets are held", n)
	}
}
