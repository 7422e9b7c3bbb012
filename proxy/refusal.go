package proxy

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/pattern"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/render"
)

// refusal is why a provider refused a request. The kind is empty when it did not, or
// when there is nothing to do about it; said is what it wrote.
type refusal struct {
	kind llm.Kind
	said string
}

// maxRefusal bounds what is read of an error, in bytes.
const maxRefusal = 1 << 20

// refusal reads why a provider refused a request. The answer can still be read
// afterwards.
func (x *exchange) refusal(res *http.Response, d decision) refusal {
	if res.StatusCode < 400 {
		return x.early(res, d)
	}
	said, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	res.Body = again(said, err, res.Body, res.Body)
	if err != nil || res.StatusCode == http.StatusTooManyRequests && len(said) == 0 {
		return refusal{}
	}
	text, err := decoded(res.Header, string(said), maxRefusal, nil)
	if err != nil {
		text = ""
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			return refusal{}
		}
	}
	why := refusal{llm.Classify(x.endpoint.dialect.API(), res.StatusCode, []byte(text)), text}
	if why.kind == llm.ErrOverflow {
		if window := namedWindow(text); window > 0 {
			x.learn(x.modelName(d.read), window)
		}
	}
	return why
}

// largeEnough is the size of a body, in bytes, from which a stream is looked
// into for a refusal: a smaller one fits every window.
const largeEnough = 64 << 10

// early finds a refusal at the beginning of an answer whose status says that all
// is well. The answer can still be read from its beginning afterwards.
func (x *exchange) early(res *http.Response, d decision) refusal {
	if res.StatusCode != http.StatusOK || d.step == nil && len(x.body) < largeEnough || res.Header.Get("Content-Encoding") != "" {
		return refusal{}
	}
	kind := res.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		return x.earlyEvent(res)
	case strings.HasPrefix(kind, "application/json") && res.ContentLength < maxError:
		// Gateways hand on what a provider behind them said.
		said, err := io.ReadAll(io.LimitReader(res.Body, maxError))
		res.Body = again(said, err, res.Body, res.Body)
		if len(said) < maxError && gjson.GetBytes(said, "error").IsObject() {
			return refusal{llm.Classify(x.endpoint.dialect.API(), res.StatusCode, said), string(said)}
		}
	}
	return refusal{}
}

// maxError is the size of a body, in bytes, up to which it can be nothing but an
// error.
const maxError = 8 << 10

// earlyEvent looks at the first event that says anything.
func (x *exchange) earlyEvent(res *http.Response) (why refusal) {
	stream := sse.NewReader(res.Body, 0)
	var seen []byte
	var failed error
	for len(seen) < maxRefusal {
		e, err := nextEvent(stream)
		seen = append(seen, e.Raw...)
		if err != nil {
			failed = err
			break
		}
		if prelude(e) {
			continue
		}
		if isError(e) {
			why = refusal{llm.Classify(x.endpoint.dialect.API(), res.StatusCode, []byte(e.Data)), e.Data}
		}
		break
	}
	res.Body = again(seen, failed, stream.Rest(), res.Body)
	return why
}

// isError reports whether an event says that the answer has failed.
func isError(e sse.Event) bool {
	if v := gjson.Get(e.Data, "error"); v.Exists() && v.Type != gjson.Null {
		return true
	}
	return e.Name == "error" || gjson.Get(e.Data, "response.error").IsObject()
}

// prelude reports whether an event comes before the model has begun to answer.
func prelude(e sse.Event) bool {
	switch gjson.Get(e.Data, "type").Str {
	case "response.created", "response.in_progress", "response.queued", "ping":
		return true
	}
	return strings.TrimSpace(e.Data) == ""
}

// remedy is what is done about a refusal. Each is tried once, and none after one that comes
// behind it.
type remedy int

const (
	noRemedy     remedy = iota
	wholeHistory        // in the place of its name, which the provider does not know
	smaller             // of what was too long
	ownBytes            // the client's, where the provider finds ours invalid; their answer counts, whatever it is
	noReasoning         // reasoning that was made for a prompt of ours does not hold for the client's
)

// ask sends what was decided upon, and in another way what the provider refuses for a reason
// that we can do something about. It returns the decision that was answered, and why that was
// refused.
func (x *exchange) ask(ctx context.Context, d decision) (decision, *http.Response, refusal, error) {
	res, err := x.send(d)
	for err == nil && x.endpoint.task == generate {
		why := x.refusal(res, d)
		if d.remedy == smaller && why.kind == "" && res.StatusCode == http.StatusOK {
			x.t.recovered.Add(1)
		}
		next := x.remedy(ctx, d, res, why)
		if next.remedy == d.remedy || next.action == Passed && next.remedy != ownBytes {
			if next.remedy == smaller && d.remedy != smaller {
				d.reason = cmp.Or(next.reason, d.reason)
				res = x.unknown(res)
			}
			return d, res, why, nil
		}
		res.Body.Close()
		d = next
		res, err = x.send(d)
	}
	return d, res, refusal{}, err
}

// aboutReasoning finds out whether a refusal is about reasoning.
var aboutReasoning = pattern.New(`(?i)thinking|signature|encrypted|reasoning`)

// remedy is what is sent after a refusal: the same decision where there is nothing to be done, and
// one that passes where it could not be.
func (x *exchange) remedy(ctx context.Context, d decision, res *http.Response, why refusal) (next decision) {
	invalid := why.kind == llm.ErrInvalid
	switch {
	case d.remedy < wholeHistory && x.forgotten(res, d, why):
		next = x.whole(ctx)
		next.remedy = wholeHistory
	case d.remedy < smaller && why.kind == llm.ErrOverflow:
		next = x.guarded(ctx, "overflow", func(ctx context.Context) (decision, error) { return x.overflowed(ctx, d) })
		next.remedy = smaller
	case d.remedy < ownBytes && invalid && d.action != Passed:
		x.fault("invalid", llm.ErrInvalid, d.step)
		next = decision{action: Passed, reason: "refused", read: d.read, step: d.step, remedy: ownBytes}
	case d.remedy < noReasoning && invalid && (d.step != nil || d.reason == "fault" || d.reason == "native") && aboutReasoning().MatchString(why.said):
		next = x.guarded(ctx, "reasoning", func(ctx context.Context) (decision, error) { return x.withoutReasoning(ctx, d.read) })
		next.remedy = noReasoning
	default:
		return d
	}
	return next
}

func (x *exchange) withoutReasoning(ctx context.Context, r *reading) (decision, error) {
	if r == nil {
		var reason string
		var err error
		if r, reason, err = x.read(ctx); err != nil || r == nil {
			return pass(reason), err
		}
	}
	profile := render.For(x.endpoint.dialect.API())
	profile.BoundReasoning = true
	p := *r.Prompt
	p.Messages = nil
	for _, m := range r.Prompt.Messages {
		if m = profile.Translate(m, true); len(m.Parts) > 0 {
			p.Messages = append(p.Messages, m)
		}
	}
	body, err := x.endpoint.dialect.Encode(&p)
	if err != nil {
		return decision{}, err
	}
	return decision{action: Planned, reason: "without-reasoning", read: r, body: body}, nil
}
