package store

import (
	"errors"
	"testing"
	"time"

	"example.com/shipq/order"
)

// clock is a clock that only moves when told to.
type clock struct{ t time.Time }

func newClock() *clock                   { return &clock{time.Date(2025, 5, 12, 9, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }

func testOrder(id order.ID) order.Order {
	return order.Order{ID: id, Customer: "Ada Quist", Country: "SE", WeightGrams: 900, Service: order.Standard}
}

func filled(t *testing.T, c *clock, ids ...order.ID) *Store {
	t.Helper()
	s := New(c.now)
	for _, id := range ids {
		if err := s.Put(testOrder(id)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestPutTwice(t *testing.T) {
	s := filled(t, newClock(), "ORD-10001-A")
	if err := s.Put(testOrder("ORD-10001-A")); !errors.Is(err, ErrExists) {
		t.Errorf("second Put: %v, want ErrExists", err)
	}
}

func TestClaimOldestFirst(t *testing.T) {
	s := filled(t, newClock(), "ORD-10002-A", "ORD-10001-A")
	for _, want := range []order.ID{"ORD-10002-A", "ORD-10001-A"} {
		l, err := s.Claim("w1", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if l.Order.ID != want {
			t.Errorf("claimed %s, want %s", l.Order.ID, want)
		}
	}
	if _, err := s.Claim("w1", time.Minute); !errors.Is(err, ErrEmpty) {
		t.Errorf("third Claim: %v, want ErrEmpty", err)
	}
}

func TestExpiredLeaseIsClaimable(t *testing.T) {
	c := newClock()
	s := filled(t, c, "ORD-10001-A")
	first, _ := s.Claim("w1", time.Minute)
	c.advance(61 * time.Second)
	second, err := s.Claim("w2", time.Minute)
	if err != nil {
		t.Fatalf("claim after expiry: %v", err)
	}
	if err := s.Ack(first, "LBL-1"); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Ack with the old lease: %v, want ErrLeaseLost", err)
	}
	if err := s.Ack(second, "LBL-2"); err != nil {
		t.Errorf("Ack with the new lease: %v", err)
	}
}

func TestReleaseDelays(t *testing.T) {
	c := newClock()
	s := filled(t, c, "ORD-10001-A")
	l, _ := s.Claim("w1", time.Minute)
	if err := s.Release(l, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if l, err := s.Claim("w2", time.Minute); !errors.Is(err, ErrEmpty) {
		t.Errorf("claim during the delay gave %s, error %v; want ErrEmpty", l.Order.ID, err)
	}
	c.advance(10 * time.Second)
	if _, err := s.Claim("w2", time.Minute); err != nil && !errors.Is(err, ErrEmpty) {
		t.Errorf("claim after the delay: %v", err)
	}
}

func TestExtendKeepsTheLease(t *testing.T) {
	c := newClock()
	s := filled(t, c, "ORD-10001-A")
	l, _ := s.Claim("w1", time.Minute)
	c.advance(50 * time.Second)
	l, err := s.Extend(l, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.advance(50 * time.Second)
	if _, err := s.Claim("w2", time.Minute); !errors.Is(err, ErrEmpty) {
		t.Errorf("claim of an extended lease: %v, want ErrEmpty", err)
	}
	if err := s.Ack(l, "LBL-1"); err != nil {
		t.Error(err)
	}
}

func TestStats(t *testing.T) {
	s := filled(t, newClock(), "ORD-10001-A", "ORD-10002-A", "ORD-10003-A")
	l, _ := s.Claim("w1", time.Minute)
	if err := s.Fail(l, "address unknown"); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Stats(), (Stats{Queued: 2, Failed: 1}); got != want {
		t.Errorf("Stats() = %+v, want %+v", got, want)
	}
	if got := len(s.List(order.Failed)); got != 1 {
		t.Errorf("List(failed) has %d orders, want 1", got)
	}
}
