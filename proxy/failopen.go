package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
)

var errPanic = errors.New("panic")

// runWithin runs f within a deadline, and turns a panic into an error. An f that is late ends
// when it next looks at its context, as counting and summarizing do before each message; its
// result is dropped.
func runWithin[T any](ctx context.Context, deadline time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- outcome{err: fmt.Errorf("%w: %v", errPanic, p)}
			}
		}()
		value, err := f(ctx)
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// decideOrForward is where a request fails open: it is what f decides, or if f fails, the
// client's own bytes.
func (x *exchange) decideOrForward(ctx context.Context, what string, f func(context.Context) (decision, error)) decision {
	d, err := runWithin(ctx, x.t.options.Deadline, f)
	if err == nil {
		return d
	}
	x.emitFault(what, err, d.step)
	return forward(reasonFault)
}

// bestEffort does something that the answer does not depend on, also if the client is gone. It reports
// whether that succeeded.
func (x *exchange) bestEffort(what string, s *step, f func(context.Context) error) bool {
	ctx := context.WithoutCancel(x.request.Context())
	_, err := runWithin(ctx, x.t.options.Deadline, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	if err != nil {
		x.emitFault(what, err, s)
	}
	return err == nil
}

func (x *exchange) emitFault(what string, err error, s *step) {
	x.t.faults.Add(1)
	e := event.Event{
		Type: event.Failed, Err: event.ErrorClass(err), Duration: time.Since(x.start),
		Details: map[string]any{"fallback": "passthrough", "where": "proxy_" + what},
	}
	if errors.Is(err, errPanic) {
		e.Err = "panic"
	}
	if s != nil {
		e.ThreadID = s.logID
	}
	event.Emit(context.WithoutCancel(x.request.Context()), x.t.options.Config.Events, e)
}

func (x *exchange) emitStreamFault(err error) { x.emitFault("stream", err, nil) }
