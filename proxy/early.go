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

// early finds a refusal at the beginning of a stream whose status says that all
// is well. The stream can still be read from its beginning afterwards.
func (x *exchange) early(res *http.Response, v verdict) llm.Kind {
	if res.StatusCode != http.StatusOK || v.step == nil && len(x.original) < largeEnough ||
		!strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || res.Header.Get("Content-Encoding") != "" {
		return ""
	}
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
		if gjson.Get(e.data, "error").Exists() || e.name == "error" || gjson.Get(e.data, "response.error").IsObject() {
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

// prelude reports whether an event comes before the model has begun to answer.
func prelude(e sent) bool {
	switch gjson.Get(e.data, "type").Str {
	case "response.created", "response.in_progress", "response.queued", "ping":
		return true
	}
	return strings.TrimSpace(e.data) == ""
}
