package dispatch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"example.com/shipq/carrier"
	"example.com/shipq/order"
	"example.com/shipq/retry"
	"example.com/shipq/store"
)

// shipFunc is a Shipper made of a function.
type shipFunc func(ctx context.Context, o order.Order) (carrier.Label, error)

func (f shipFunc) CreateLabel(ctx context.Context, o order.Order) (carrier.Label, error) {
	return f(ctx, o)
}

// noLimit lets everything through, but notices the end of the context.
type noLimit struct{}

func (noLimit) Wait(ctx context.Context) error { return ctx.Err() }

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

const id = order.ID("ORD-10007-A")

// newWorker returns a worker with one order in its store.
func newWorker(t *testing.T, c *clock, ship shipFunc) *Worker {
	t.Helper()
	s := store.New(c.now)
	if err := s.Put(order.Order{ID: id, Customer: "Ada Quist", Country: "SE", WeightGrams: 900, Service: order.Standard}); err != nil {
		t.Fatal(err)
	}
	return &Worker{
		Name:    "w1",
		Store:   s,
		Shipper: ship,
		Limiter: noLimit{},
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
		Lease:   time.Minute,
		Requeue: 10 * time.Second,
	}
}

func startClock() *clock { return &clock{time.Date(2025, 5, 12, 9, 0, 0, 0, time.UTC)} }

// wantStatus checks the state of the order.
func wantStatus(t *testing.T, w *Worker, want order.Status) order.Order {
	t.Helper()
	o, err := w.Store.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	if o.Status != want {
		t.Errorf("status = %s, want %s", o.Status, want)
	}
	return o
}

func TestRunOnceShips(t *testing.T) {
	w := newWorker(t, startClock(), func(context.Context, order.Order) (carrier.Label, error) {
		return carrier.Label{Ref: "LBL-1"}, nil
	})
	worked, err := w.RunOnce(context.Background())
	if !worked || err != nil {
		t.Fatalf("RunOnce = %v, %v", worked, err)
	}
	if o := wantStatus(t, w, order.Shipped); o.LabelRef != "LBL-1" {
		t.Errorf("label = %q", o.LabelRef)
	}
	if worked, err := w.RunOnce(context.Background()); worked || err != nil {
		t.Errorf("second RunOnce = %v, %v; want nothing to do", worked, err)
	}
}

func TestRunOnceErrors(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name string
		err  error
		want order.Status
	}{
		{"temporary", boom, order.Queued},
		{"permanent", retry.Permanent(boom), order.Failed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorker(t, startClock(), func(context.Context, order.Order) (carrier.Label, error) {
				return carrier.Label{}, tt.err
			})
			w.RunOnce(context.Background())
			wantStatus(t, w, tt.want)
		})
	}
}

func TestRunOnceReleasesOnShutdown(t *testing.T) {
	t.Run("while shipping", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		w := newWorker(t, startClock(), func(ctx context.Context, _ order.Order) (carrier.Label, error) {
			cancel()
			return carrier.Label{}, ctx.Err()
		})
		w.RunOnce(ctx)
		wantStatus(t, w, order.Queued)
	})
	t.Run("while waiting for the limiter", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w := newWorker(t, startClock(), nil)
		w.RunOnce(ctx)
		wantStatus(t, w, order.Queued)
	})
}

func TestRunOnceKeepsALabelBoughtDuringShutdown(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorker(t, startClock(), func(context.Context, order.Order) (carrier.Label, error) {
		cancel() // the answer is already on its way
		return carrier.Label{Ref: "LBL-1"}, nil
	})
	w.RunOnce(ctx)
	if o := wantStatus(t, w, order.Shipped); o.LabelRef != "LBL-1" {
		t.Errorf("label = %q, want LBL-1", o.LabelRef)
	}
}
