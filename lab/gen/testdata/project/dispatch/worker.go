// Package dispatch runs the workers that turn queued orders into labels.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"example.com/shipq/carrier"
	"example.com/shipq/order"
	"example.com/shipq/retry"
	"example.com/shipq/store"
)

// Shipper buys a label. *carrier.Client is one.
type Shipper interface {
	CreateLabel(ctx context.Context, o order.Order) (carrier.Label, error)
}

// Limiter slows the workers down to what the carrier allows.
type Limiter interface {
	Wait(ctx context.Context) error
}

// Worker takes orders from the store one at a time.
type Worker struct {
	Name    string
	Store   *store.Store
	Shipper Shipper
	Limiter Limiter
	Log     *slog.Logger

	// Lease is how long a claimed order stays ours.
	Lease time.Duration
	// Requeue is the delay before an order with a temporary error is tried
	// again, possibly by another worker.
	Requeue time.Duration
	// Idle is the pause when there is nothing to do.
	Idle time.Duration
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		worked, err := w.RunOnce(ctx)
		if err != nil && ctx.Err() == nil {
			w.Log.Error("order not shipped", "worker", w.Name, "err", err)
		}
		if worked {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(w.Idle):
		}
	}
	return ctx.Err()
}

// RunOnce takes one order through to the end. It reports whether there was
// one.
func (w *Worker) RunOnce(ctx context.Context) (bool, error) {
	l, err := w.Store.Claim(w.Name, w.Lease)
	if errors.Is(err, store.ErrEmpty) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := w.Limiter.Wait(ctx); err != nil {
		return true, err
	}
	label, err := w.Shipper.CreateLabel(ctx, l.Order)
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	if retry.IsPermanent(err) {
		w.Log.Warn("order failed", "order", l.Order.ID, "err", err)
		return true, w.Store.Fail(l, err.Error())
	}
	if err != nil {
		if rerr := w.Store.Release(l, w.Requeue); rerr != nil {
			return true, fmt.Errorf("%w (and %w)", err, rerr)
		}
		return true, err
	}
	w.Log.Info("order shipped", "order", l.Order.ID, "label", label.Ref)
	return true, w.Store.Ack(l, label.Ref)
}
