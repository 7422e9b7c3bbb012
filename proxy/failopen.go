package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
)

// decideOrForward is where a request fails open: it is what f decides, or if f fails, the
// client's own bytes.
func (co *core) decideOrForward(ctx context.Context, x *received, what string, f func(context.Context) (decision, error)) decision {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if stop := co.options.Stop; stop != nil {
		defer context.AfterFunc(stop, func() { time.AfterFunc(2*time.Second, func() { cancel(errStopping) }) })()
	}
	d, err := failsafe.Within(ctx, co.options.Deadline, func(ctx context.Context) (decision, error) {
		memory := co.options.Memory
		if x.work > memory.allWork {
			return forward(reasonTooLarge), nil
		}
		waiting, cancel := context.WithTimeout(ctx, co.options.Deadline/2)
		defer cancel()
		end, err := memory.beginWork(waiting, x.work)
		if err != nil {
			return forward(reasonBusy), nil
		}
		defer end()
		return f(ctx)
	})
	if err == nil {
		return d
	}
	if context.Cause(ctx) == errStopping {
		return forward(reasonStopping)
	}
	co.emitFault(x, what, err, d.step)
	failed := forward(reasonFault)
	failed.failedLog = d.logID()
	return failed
}

var errStopping = errors.New("the process is to end")

// bestEffort does something that the answer does not depend on, also if the client is gone. It reports
// whether that succeeded.
func (co *core) bestEffort(x *received, what string, s *step, f func(context.Context) error) bool {
	ctx := context.WithoutCancel(x.request.Context())
	_, err := failsafe.Within(ctx, co.options.Deadline, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	if err != nil {
		co.emitFault(x, what, err, s)
	}
	return err == nil
}

// emitFault tells of a failure. Its class says whose it is: storage, provider, that of a context,
// or else our own. The provider's are not counted as faults.
func (co *core) emitFault(x *received, what string, err error, s *step) {
	e := event.Event{
		Type: event.Failed, TenantID: co.options.Config.Requester.TenantID, Duration: time.Since(x.start),
		Details: map[string]any{"fallback": "passthrough", "where": "proxy_" + what},
	}.Failing(err)
	switch e.Err {
	case "storage", providerSide, "panic", "canceled", "deadline_exceeded":
	default:
		e.Err = "internal"
	}
	if e.Err != providerSide {
		co.faults.Add(1)
	}
	if s != nil {
		e.ThreadID = s.logID
	}
	event.Emit(context.WithoutCancel(x.request.Context()), co.options.Config.Events, e)
}
