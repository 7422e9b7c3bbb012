package proxy

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
)

// panicError is a panic. Its value may quote what was sent, its place does not.
type panicError struct {
	value any
	place string // file and line
}

func (e *panicError) Error() string { return fmt.Sprintf("panic at %s: %v", e.place, e.value) }

// Class is "panic".
func (*panicError) Class() string { return "panic" }

// Quoted is what event.CauseText leaves out.
func (e *panicError) Quoted() string { return fmt.Sprint(e.value) }

// recovered is the error of a panic's value. It is called where that was recovered.
func recovered(value any) error {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	place, panicking := "an unknown place", false
	for {
		f, more := frames.Next()
		own := !strings.HasPrefix(f.Function, "runtime.")
		if panicking && own {
			place = fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
		}
		if panicking && own || !more {
			return &panicError{value, place}
		}
		panicking = panicking || f.Function == "runtime.gopanic"
	}
}

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
				done <- outcome{err: recovered(p)}
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
	d, err := runWithin(ctx, x.t.options.Deadline, func(ctx context.Context) (decision, error) {
		memory, bytes := x.t.options.Memory, workBytes(x.plainBody)
		if bytes > memory.allWork {
			return forward(reasonTooLarge), nil
		}
		waiting, cancel := context.WithTimeout(ctx, x.t.options.Deadline/2)
		defer cancel()
		end, err := memory.beginWork(waiting, bytes)
		if err != nil {
			return forward(reasonBusy), nil
		}
		defer end()
		return f(ctx)
	})
	if err == nil {
		return d
	}
	x.emitFault(what, err, d.step)
	failed := forward(reasonFault)
	failed.failedLog = d.logID()
	return failed
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

// emitFault tells of a failure. Its class says whose it is: storage, provider, that of a context,
// or else our own. The provider's are not counted as faults.
func (x *exchange) emitFault(what string, err error, s *step) {
	e := event.Event{
		Type: event.Failed, TenantID: x.t.options.Config.Requester.TenantID, Duration: time.Since(x.start),
		Details: map[string]any{"fallback": "passthrough", "where": "proxy_" + what},
	}.Failing(err)
	switch e.Err {
	case "storage", providerSide, "panic", "canceled", "deadline_exceeded":
	default:
		e.Err = "internal"
	}
	if e.Err != providerSide {
		x.t.faults.Add(1)
	}
	if s != nil {
		e.ThreadID = s.logID
	}
	event.Emit(context.WithoutCancel(x.request.Context()), x.t.options.Config.Events, e)
}

func (x *exchange) emitStreamFault(err error) { x.emitFault("stream", err, nil) }
