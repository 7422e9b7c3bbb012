package proxy

import (
	"io"
	"net/http"
	"strconv"
)

// Our own headers, which answers have. ThreadHeader may also be in a request.
const (
	// ThreadHeader is the conversation: in a request its name, in an answer the id of its log.
	ThreadHeader = "X-Palimpsest-Thread"
	// ActionHeader says what was done: one of the Action constants.
	ActionHeader = "X-Palimpsest-Action"
	// BeforeHeader and SentHeader are the tokens of the request, by our count: under the plan so far,
	// and as it was sent.
	BeforeHeader = "X-Palimpsest-Tokens-Before"
	SentHeader   = "X-Palimpsest-Tokens-Sent"
	// ReasonHeader says why a request passed as it came.
	ReasonHeader = "X-Palimpsest-Reason"
)

// The values of ActionHeader.
const (
	Passed    = "passed"    // the client's own bytes
	Planned   = "planned"   // under a plan that existed before
	Compacted = "compacted" // under a new plan
	Recovered = "recovered" // the provider refused it first
	Emulated  = "emulated"  // with native compaction done here
)

// withoutOurHeaders returns a copy of the request without our headers. A RoundTripper may not change the
// request that it was given.
func withoutOurHeaders(r *http.Request) *http.Request {
	out := *r
	if r.Header.Get(ThreadHeader) != "" {
		out.Header = r.Header.Clone()
		out.Header.Del(ThreadHeader)
	}
	return &out
}

// withBody returns the request with another body, without our headers.
func withBody(r *http.Request, size int, body func() io.Reader) *http.Request {
	out := withoutOurHeaders(r)
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(body()), nil }
	out.Body, out.ContentLength, out.TransferEncoding = io.NopCloser(body()), int64(size), nil
	if values := r.Header["Content-Length"]; len(values) > 0 {
		out.Header = out.Header.Clone()
		out.Header.Set("Content-Length", strconv.Itoa(size))
	}
	return out
}
