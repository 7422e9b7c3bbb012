package proxy

import (
	"context"
	"errors"
	"net/http"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/emulate"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// newEmulator returns the emulator of these APIs.
func (t *Transport) newEmulator(apis []string) *emulate.Emulator {
	c := &t.options.Config
	return emulate.New(emulate.Config{
		APIs: apis, Deadline: t.options.Deadline, Patience: defaultDeadline,
		Summarizer: c.Summarizer, Answers: c.Answers, Events: c.Events,
		Key: func(ctx context.Context) ([]byte, error) { return t.histories.tokenSecret.load(ctx, &t.options) },
		Model: func(name string) (token.Model, *token.Counter, error) {
			m := t.models.model(name)
			counter, err := t.models.counter(m)
			return m, counter, err
		},
		Fault: func(r emulate.Request, where string, err error, log string) {
			var s *step
			if log != "" {
				s = &step{logID: log}
			}
			t.emitFault(&received{request: r.HTTP, start: r.Start}, where, err, s)
		},
	})
}

// emulated is an exchange behind the emulator.
type emulated struct {
	t *Transport
	x *received
	d decision // what was sent
}

// runEmulated has the emulator do what its provider cannot do itself, and sends on what is left.
func (t *Transport) runEmulated(x *received) (*http.Response, decision, error) {
	if t.emulator == nil || x.decompressErr != nil || !canBeHeld(x.plainBody) {
		return t.run(x)
	}
	e := &emulated{t: t, x: x}
	r := emulate.Request{
		HTTP: x.request, API: x.endpoint.dialect.API(), Counts: x.endpoint.task == count, Compacts: x.endpoint.task == compaction,
		Body: x.plainBody, Start: x.start,
	}
	res, did, err := t.emulator.RoundTrip(r, e)
	t.compactions.Add(int64(did.Compactions))
	if did.Answered {
		t.countRequest(x.endpoint)
		res.Header.Set(ActionHeader, Emulated)
		return res, decision{action: Emulated}, nil
	}
	return res, e.d, err
}

// with is the exchange with the request that goes on.
func (e *emulated) with(r emulate.Request) *received {
	own := *e.x
	own.request = r.HTTP
	own.managed, own.threshold, own.edited = r.Managed, r.Threshold, r.Edited
	if r.Body != own.plainBody {
		own = own.withBody(r.Body)
	}
	own.bytesBefore = len(e.x.plainBody)
	return &own
}

// Send implements emulate.Proxy.
func (e *emulated) Send(r emulate.Request) (res *http.Response, at *emulate.Place, err error) {
	x := e.with(r)
	if res, e.d, err = e.t.run(x); err != nil || !r.Managed || e.d.action != Compacted || e.d.step == nil {
		return res, nil, err
	}
	e.t.bestEffort(x, "compaction", e.d.step, func(ctx context.Context) error {
		place, err := e.t.place(ctx, x, e.d.step.logID, e.d.step.parsed)
		at = &place
		return err
	})
	return res, at, nil
}

// place is where a request ends in its log.
func (t *Transport) place(ctx context.Context, x *received, log string, r *parsedRequest) (emulate.Place, error) {
	h, messages, err := t.conversations.logPosition(ctx, log, r)
	return emulate.Place{Log: h.Log, At: h.At, Last: h.Last, Messages: messages, Request: r.Prompt.Messages, System: rawStrings(instructions(r.Prompt))}, err
}

// Compact implements emulate.Proxy.
func (e *emulated) Compact(ctx context.Context, r emulate.Request) (at emulate.Place, err error) {
	x := e.with(r)
	if reader, _ := e.t.histories.reader(x); reader != nil {
		found, err := reader.read(ctx)
		if err != nil {
			return at, err
		}
		x.held, at.Items = found.held, found.items
	}
	if h := x.held; h != nil && h.kind == heldResponse && h.name != "" && !h.known {
		return at, native.ResponseNotFound(h.name)
	}
	p, reason, err := e.t.parser.parseRequest(ctx, x)
	if err == nil && p == nil {
		err = errors.New("a request that cannot be read: " + reason)
	}
	if err != nil {
		return at, err
	}
	if len(p.IDs) == 0 {
		return at, &native.Refusal{API: wire.Responses, Param: "input", Message: "there is nothing to compact: the input holds no message"}
	}
	s, _, err := e.t.stepper.beginStep(ctx, x, p)
	if err != nil {
		return at, err
	}
	if s.prepared.Compacted == nil {
		input := s.prepared.Step
		input.Budget, input.OwnTarget = s.prepared.Tokens, true
		_, err = s.session.Compact(ctx, input, "")
		if err != nil && !errors.Is(err, policy.ErrNothing) && !errors.Is(err, palimpsest.ErrOverBudget) {
			return at, err
		}
	}
	items := at.Items
	at, err = e.t.place(ctx, x, s.logID, p)
	at.Items = items
	return at, err
}

// Record implements emulate.Proxy.
func (e *emulated) Record(ctx context.Context, r emulate.Request) string {
	x := e.with(r)
	p, reason, err := e.t.parser.parseRequest(ctx, x)
	if err != nil || reason != "" {
		return ""
	}
	for range maxTries {
		at, err := e.t.conversations.findConversation(ctx, x, p)
		if err == nil {
			err = e.t.conversations.appendNew(ctx, at, x.request.UserAgent())
		}
		if err == nil {
			return at.Log
		}
		if !isConflict(err) {
			break
		}
	}
	return ""
}

// Keep implements emulate.Proxy.
func (e *emulated) Keep(ctx context.Context, id string, at emulate.Place, output ...string) error {
	return e.t.histories.responses.save(ctx, id, &storedResponse{
		Made: e.x.start.UnixNano(), loggedHistory: loggedHistory{at.Log, at.At, at.Last},
		System: rawMessages(at.System), Output: rawMessages(output), Incomplete: len(output) > 0,
	})
}
