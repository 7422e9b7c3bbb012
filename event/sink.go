package event

import (
	"context"
	"sync/atomic"
	"time"
)

// Sink is told what happens. Emit is called from the agent's path, often by
// several goroutines at once: it must not block, cannot fail, and must be safe
// for concurrent use. What is slow belongs behind a Queue.
type Sink interface {
	Emit(ctx context.Context, e Event)
}

// Emit hands the event to the sink, sets its time if it has none, and lets
// nothing that the sink does wrong reach the caller: a panic of the sink ends
// here, and is gone. A nil sink is Discard.
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

// Discard is the sink that does nothing.
const Discard = discard(0)

type discard int

func (discard) Emit(context.Context, Event) {}

// Multi gives each event to every sink in turn. One that panics harms neither
// the caller nor those after it; nil ones are passed over.
func Multi(sinks ...Sink) Sink { return multi(append([]Sink(nil), sinks...)) }

type multi []Sink

func (m multi) Emit(ctx context.Context, e Event) {
	for _, s := range m {
		Emit(ctx, s, e)
	}
}

// Queue puts a slow sink, such as one that writes to a database, behind a
// buffer: Emit never waits, and an event that finds the buffer full is lost and
// counted. Make one with NewQueue and let a goroutine Run it.
type Queue struct {
	to     Sink
	events chan queued
	lost   atomic.Int64
}

type queued struct {
	ctx   context.Context
	event Event
}

// NewQueue returns a queue in front of the sink that holds up to size events;
// size 0 stands for 1,024.
func NewQueue(to Sink, size int) *Queue {
	if size <= 0 {
		size = 1024
	}
	return &Queue{to: to, events: make(chan queued, size)}
}

// Emit puts the event into the buffer. The sink gets the values of ctx (trace,
// tenant) but not its end, since the caller may be gone by then.
func (q *Queue) Emit(ctx context.Context, e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	select {
	case q.events <- queued{context.WithoutCancel(ctx), e}:
	default:
		q.lost.Add(1)
	}
}

// Run hands events on until ctx is done, then those that are still in the
// buffer, and returns nil. Only one Run keeps the order.
func (q *Queue) Run(ctx context.Context) error {
	for {
		select {
		case one := <-q.events:
			Emit(one.ctx, q.to, one.event)
		case <-ctx.Done():
			for {
				select {
				case one := <-q.events:
					Emit(one.ctx, q.to, one.event)
				default:
					return nil
				}
			}
		}
	}
}

// Lost is the number of events that found the buffer full.
func (q *Queue) Lost() int64 { return q.lost.Load() }
