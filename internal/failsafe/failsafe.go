// Package failsafe runs work whose failure must not harm what waits for it.
package failsafe

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"
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

// Recovered is the error of a panic's value. It is called where that was recovered.
func Recovered(value any) error {
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

// Within runs f within a deadline, and turns a panic into an error. An f that is late ends
// when it next looks at its context, as counting and summarizing do before each message; its
// result is dropped.
func Within[T any](ctx context.Context, deadline time.Duration, f func(context.Context) (T, error)) (T, error) {
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
				done <- outcome{err: Recovered(p)}
			}
		}()
		growStack(0)
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

// growStack makes room on the stack of a new goroutine at once, since one that grows with its calls is copied
// for each doubling.
//
//go:noinline
func growStack(at int) byte { var room [16 << 10]byte; return room[at] }

// OrOnPanic returns what f returns, or otherwise if f panics.
func OrOnPanic[T any](otherwise T, failed func(error), f func() T) (out T) {
	defer func() {
		if p := recover(); p != nil {
			failed(Recovered(p))
			out = otherwise
		}
	}()
	return f()
}
