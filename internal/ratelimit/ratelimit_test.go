package ratelimit

import (
	"testing"
	"time"
)

// TestBuckets: what is used comes back with time, a debt is made up for first, and each
// key has its own.
func TestBuckets(t *testing.T) {
	now := time.Unix(1e9, 0)
	b := New[string](60, time.Minute, func() time.Time { return now })
	for range 60 {
		if wait := b.Take("a", 1); wait != 0 {
			t.Fatal(wait)
		}
	}
	if wait := b.Take("a", 2); wait.Round(time.Millisecond) != 2*time.Second || b.Take("a", 2) != wait {
		t.Errorf("wait %s", wait)
	}
	if b.Take("b", 60) != 0 {
		t.Error("another key waits")
	}
	now = now.Add(b.Take("a", 1))
	if b.Take("a", 1) != 0 || b.Take("a", 1) == 0 {
		t.Error("not one token came back")
	}
	b.Give("b", -30)
	if wait := b.Take("b", 1).Round(time.Second); wait != 30*time.Second {
		t.Errorf("in debt: %s", wait)
	}
	now = now.Add(-time.Hour)
	if b.Take("a", 1) == 0 {
		t.Error("a clock that went back gave tokens")
	}
	b.Give("a", 1000)
	if b.Take("a", 61) == 0 || b.Take("a", 60) != 0 {
		t.Error("a bucket holds more, or less, than it may")
	}
}

// TestNoBound: where there is no bound nothing waits.
func TestNoBound(t *testing.T) {
	b := New[int](0, time.Minute, time.Now)
	b.Give(1, -5)
	if b.Take(1, 1e9) != 0 {
		t.Error("nothing bounds it, and it waits")
	}
}

// TestBucketsGo: of many keys those that were quiet for longest take no room.
func TestBucketsGo(t *testing.T) {
	b := New[int](60, time.Minute, func() time.Time { return time.Unix(1e9, 0) })
	for n := range 3 * maxBuckets {
		if b.Take(n, 1) != 0 {
			t.Fatal(n)
		}
	}
	if n, _ := b.buckets.Stats(); n > maxBuckets {
		t.Errorf("%d buckets are held", n)
	}
}
