package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
)

// largeEnough is the size of a body, in bytes, from which a stream is looked
// into for a refusal: a smaller one fits every window.
const largeEnough = 64 << 10

// early finds a refusal at the beginning of an answer whose status says that all
// is well. The answer can still be read from its beginning afterwards.
func (x *exchange) early(res *http.Response, v verdict) llm.Kind {
	if res.StatusCode != http.StatusOK || v.step == nil && len(x.original) < largeEnough || res.Header.Get("Content-Encoding") != "" {
		return ""
	}
	kind := res.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		return x.earlyEvent(res)
	case strings.HasPrefix(kind, "application/json") && res.ContentLength < maxError:
		// Gateways hand on what a provider behind them said.
		said, err := io.ReadAll(io.LimitReader(res.Body, maxError))
		res.Body = again(said, err, res.Body)
		if len(said) < maxError && gjson.GetBytes(said, "error").IsObject() {
			x.said = string(said)
			return llm.Classify(x.endpoint.dialect.API(), res.StatusCode, said)
		}
	}
	return ""
}

// maxError is the size of a body, in bytes, up to which it can be nothing but an
// error.
const maxError = 8 << 10

// earlyEvent looks at the first event that says anything.
func (x *exchange) earlyEvent(res *http.Response) llm.Kind {
	stream := newEvents(res.Body)
	var seen []byte
	var failed error
	kind := llm.Kind("")
	for len(seen) < maxRefusal {
		e, err := stream.next()
		seen = append(seen, e.raw...)
		if err != nil {
			failed = err
			break
		}
		if prelude(e) {
			continue
		}
		if e.isError() {
			x.said = e.data
			kind = llm.Classify(x.endpoint.dialect.API(), res.StatusCode, []byte(e.data))
		}
		break
	}
	rest := io.Reader(stream.r)
	if failed != nil {
		rest = failing{failed}
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(seen), rest), res.Body}
	return kind
}

// isError reports whether an event says that the answer has failed.
func (ev sent) isError() bool {
	if v := gjson.Get(ev.data, "error"); v.Exists() && v.Type != gjson.Null {
		return true
	}
	return ev.name == "error" || gjson.Get(ev.data, "response.error").IsObject()
}

// prelude reports whether an event comes before the model has begun to answer.
func prelude(e sent) bool {
	switch gjson.Get(e.data, "type").Str {
	case "response.created", "response.in_progress", "response.queued", "ping":
		return true
	}
	return strings.TrimSpace(e.data) == ""
}
