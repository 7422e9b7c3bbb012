package proxy

import (
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// refusal is why a provider refused a request. The kind is empty if it did not, or if that cannot be
// read; text is what the provider wrote.
type refusal struct {
	kind llm.Kind
	text string
}

// maxRefusal bounds what is read of an error, in bytes.
const maxRefusal = 1 << 20

// readRefusal reads why a provider refused a request. The answer can still be read afterwards.
func (x *received) readRefusal(res *http.Response, d decision) refusal {
	if res.StatusCode < 400 {
		return x.earlyRefusal(res, d)
	}
	said, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	res.Body = httpbody.Rejoin(said, err, res.Body, res.Body)
	if err != nil || res.StatusCode == http.StatusTooManyRequests && len(said) == 0 {
		return refusal{}
	}
	text, err := httpbody.Decompress(res.Header, string(said), maxRefusal, nil)
	if err != nil {
		text = ""
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			return refusal{}
		}
	}
	return classify(x.endpoint.dialect.API(), res, text)
}

func classify(api string, res *http.Response, text string) refusal {
	return refusal{llm.Classify(api, res.StatusCode, []byte(text)), text}
}

// earlyRefusal finds a refusal at the beginning of an answer with status 200. The answer can
// still be read from its beginning afterwards.
func (x *received) earlyRefusal(res *http.Response, d decision) refusal {
	if res.StatusCode != http.StatusOK || x.isArrayStream() || d.step == nil && !x.isLarge() || res.Header.Get("Content-Encoding") != "" {
		return refusal{}
	}
	kind := res.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		return refusalInStream(x.endpoint.dialect.API(), res)
	case strings.HasPrefix(kind, "application/json") && res.ContentLength < maxError:
		// Gateways pass on the error of a provider behind them.
		said, err := io.ReadAll(io.LimitReader(res.Body, maxError))
		res.Body = httpbody.Rejoin(said, err, res.Body, res.Body)
		if len(said) < maxError && gjson.GetBytes(said, "error").IsObject() {
			return classify(x.endpoint.dialect.API(), res, string(said))
		}
	}
	return refusal{}
}

// maxError is the largest body, in bytes, that is taken for an error.
const maxError = 8 << 10

// refusalInStream looks at the first event that is more than a prelude.
func refusalInStream(api string, res *http.Response) (why refusal) {
	stream := sse.NewReader(res.Body, 0)
	var seen []byte
	var failed error
	for len(seen) < maxRefusal {
		e, err := httpbody.NextEvent(stream)
		seen, failed = append(seen, e.Raw...), err
		if err == nil && isPrelude(e) {
			continue
		}
		if err == nil && isError(e) {
			why = classify(api, res, e.Data)
		}
		break
	}
	res.Body = httpbody.Rejoin(seen, failed, stream.Rest(), res.Body)
	return why
}

func isError(e sse.Event) bool {
	if v := gjson.Get(e.Data, "error"); v.Exists() && v.Type != gjson.Null {
		return true
	}
	return e.Name == "error" || gjson.Get(e.Data, "response.error").IsObject()
}

// isPrelude reports whether an event comes before anything that the model wrote.
func isPrelude(e sse.Event) bool {
	switch gjson.Get(e.Data, "type").Str {
	case "response.created", "response.in_progress", "response.queued", "ping":
		return true
	}
	return strings.TrimSpace(e.Data) == ""
}
