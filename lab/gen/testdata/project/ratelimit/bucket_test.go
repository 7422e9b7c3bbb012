package ratelimit

import (
	"context"
	"testing"
	"time"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newClock() *clock { return &clock{time.Date(2025, 5, 12, 9, 0, 0, 0, time.UTC)} }

func TestBurst(t *testing.T) {
	b := New(10, 3, newClock().now)
	for i := 0; i < 3; i++ {
		if !b.Allow() {
			t.Fatalf("event %d was refused", i)
		}
	}
	if b.Allow() {
		t.Error("a fourth event was allowed")
	}
}

func TestAverageRate(t *testing.T) {
	tests := []struct {
		name       string
		rate       int
		step, over time.Duration
		want       int
	}{
		{"one call per token", 10, 100 * time.Millisecond, 10 * time.Second, 100},
		{"calls between tokens", 10, 70 * time.Millisecond, 7 * time.Second, 70},
		{"busy caller", 10, 5 * time.Millisecond, 10 * time.Second, 100},
		{"slow rate", 3, 50 * time.Millisecond, 20 * time.Second, 60},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newClock()
			b := New(tt.rate, 1, c.now)
			b.Allow() // empty it
			got := 0
			for at := time.Duration(0); at < tt.over; at += tt.step {
				c.t = c.t.Add(tt.step)
				if b.Allow() {
					got++
				}
			}
			// One token may still be in the making when the time is over.
			if got < tt.want-1 || got > tt.want {
				t.Errorf("%d events in %v at %d/s, want %d", got, tt.over, tt.rate, tt.want)
			}
		})
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	b := New(1, 1, newClock().now)
	b.Allow()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Wait(ctx); err != context.Canceled {
		t.Errorf("Wait = %v, want context.Canceled", err)
	}
}
