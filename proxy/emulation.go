package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/palimpsest-ai/palimpsest/emulate"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

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

// emulate has the emulator do what the provider cannot do itself, and returns the request with what
// is left.
func (t *Transport) emulate(x *received) (*received, emulate.Result) {
	if t.emulator == nil || x.decompressErr != nil || x.work == tooMuchWork {
		return x, emulate.Result{}
	}
	did := t.emulator.Do(emulate.Request{
		HTTP: x.request, API: x.endpoint.dialect.API(), Counts: x.endpoint.task == count, Compacts: x.endpoint.task == compaction,
		Body: x.plain.String(), Start: x.start,
	}, emulatorLog{t, x})
	t.compactions.Add(int64(did.Compactions))
	if did.Answer != nil {
		return x, did
	}
	return t.withEmulated(x, did.Request), did
}

// withEmulated is the request that an emulator made of it.
func (co *core) withEmulated(x *received, r emulate.Request) *received {
	own := *x
	own.request = r.HTTP
	own.managed, own.threshold, own.edited = r.Managed, r.Threshold, r.Edited
	if r.Body != own.plain.String() {
		own = co.rewrite(own, r.Body)
	}
	own.bytesBefore = x.plain.Len()
	return &own
}

// finishEmulation has the answer say what the emulator did, and what was compacted on the way.
func (t *Transport) finishEmulation(x *received, did emulate.Result, res *http.Response, d decision) {
	var at *emulate.Place
	if x.managed && d.action == Compacted && d.step != nil {
		t.bestEffort(x, "compaction", d.step, func(ctx context.Context) error {
			place, err := t.conversations.place(ctx, d.step.logID, d.step.parsed)
			at = &place
			return err
		})
	}
	did.Finish(res, at)
}

// place is where a request ends in its log.
func (cv *conversations) place(ctx context.Context, log string, r *parsedRequest) (emulate.Place, error) {
	h, messages, err := cv.logPosition(ctx, log, r)
	return emulate.Place{Log: h.Log, At: h.At, Last: h.Last, Messages: messages, Request: r.Prompt.Messages, System: instructions(r.Prompt)}, err
}

// emulatorLog is the log of a request's conversation, for the emulator.
type emulatorLog struct {
	t *Transport
	x *received
}

// Compact implements emulate.Log.
func (e emulatorLog) Compact(ctx context.Context, r emulate.Request) (at emulate.Place, err error) {
	x := e.t.withEmulated(e.x, r)
	if reader := e.t.histories.reader(x); reader != nil {
		found, err := reader.read(ctx)
		if err != nil {
			return at, err
		}
		x.held, at.Items = found.held, found.items
	}
	if h := x.held; h != nil && h.kind == heldResponse && h.name != "" && !h.known {
		return at, native.ResponseNotFound(h.name)
	}
	p, reason, err := e.t.conversations.parseRequest(ctx, x)
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
		if err != nil && !errors.Is(err, policy.ErrNothing) && !errors.Is(err, policy.ErrOverBudget) {
			return at, err
		}
	}
	items := at.Items
	at, err = e.t.conversations.place(ctx, s.logID, p)
	at.Items = items
	return at, err
}

// Record implements emulate.Log.
func (e emulatorLog) Record(ctx context.Context, r emulate.Request) string {
	x := e.t.withEmulated(e.x, r)
	p, reason, err := e.t.conversations.parseRequest(ctx, x)
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

// Keep implements emulate.Log.
func (e emulatorLog) Keep(ctx context.Context, id string, at emulate.Place, output ...string) error {
	return e.t.histories.responses.save(ctx, id, &storedResponse{
		Made: e.x.start.UnixNano(), loggedHistory: loggedHistory{at.Log, at.At, at.Last},
		System: at.System, Output: converted[json.RawMessage](output), Incomplete: len(output) > 0,
	})
}
