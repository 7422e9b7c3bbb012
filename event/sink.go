package event

import (
	"context"
	"time"
)

// Sink receives events. Emit is called while an agent waits, often by several goroutines at
// once: it must not block, and must be safe for concurrent use.
type Sink interface {
	Emit(ctx context.Context, e Event)
}

// Emit passes an event to a sink, and sets its time if it has none. It recovers from a panic
// of the sink. A nil sink does nothing.
func Emit(ctx context.Context, s Sink, e Event) {
	if s == nil {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	defer func() { _ = recover() }()
	s.Emit(ctx, e)
}

// Func makes a sink of a function.
type Func func(context.Context, Event)

// Emit calls the function. A nil Func does nothing.
func (f Func) Emit(ctx context.Context, e Event) {
	if f != nil {
		f(ctx, e)
	}
}

// Multi returns a sink that passes each event to all sinks in turn. Nil sinks are skipped, and
// one that panics does not affect the others.
func Multi(sinks ...Sink) Sink { return multi(append([]Sink(nil), sinks...)) }

type multi []Sink

func (m multi) Emit(ctx context.Context, e Event) {
	for _, s := range m {
		Emit(ctx, s, e)
	}
}
