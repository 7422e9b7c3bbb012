package event

import (
	"context"
	"time"
)

// Sink is told what happens. Emit is called from the agent's path, often by
// several goroutines at once: it must not block, cannot fail, and must be safe
// for concurrent use.
type Sink interface {
	Emit(ctx context.Context, e Event)
}

// Emit hands the event to the sink, sets its time if it has none, and lets
// nothing that the sink does wrong reach the caller: a panic of the sink ends
// here, and is gone. A nil sink does nothing.
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

// Multi gives each event to every sink in turn. One that panics harms neither
// the caller nor those after it; nil ones are passed over.
func Multi(sinks ...Sink) Sink { return multi(append([]Sink(nil), sinks...)) }

type multi []Sink

func (m multi) Emit(ctx context.Context, e Event) {
	for _, s := range m {
		Emit(ctx, s, e)
	}
}
