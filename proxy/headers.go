package proxy

import (
	"io"
	"net/http"
	"strconv"
	"strings"
)

// The headers of our own. ThreadHeader may name the conversation in a request;
// all of them stand in answers.
const (
	// ThreadHeader is the conversation: in a request its name, in an answer the
	// id of the log.
	ThreadHeader = "X-Palimpsest-Thread"
	// ActionHeader says what was done: one of the Action constants.
	ActionHeader = "X-Palimpsest-Action"
	// BeforeHeader and SentHeader are the tokens of the request, by our count,
	// under the plan before and as it was sent.
	BeforeHeader = "X-Palimpsest-Tokens-Before"
	SentHeader   = "X-Palimpsest-Tokens-Sent"
	// ReasonHeader says why a request passed as it is.
	ReasonHeader = "X-Palimpsest-Reason"
)

// The values of ActionHeader.
const (
	Passed    = "passed"    // the client's own bytes
	Planned   = "planned"   // under a plan that was in force already
	Compacted = "compacted" // under a new plan
	Recovered = "recovered" // the provider refused it first
	Emulated  = "emulated"  // native compaction that the client asked for was done here
)

// withoutOurHeaders returns the request without our headers. A RoundTripper may not
// change the request that it was given.
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

// acceptReadable asks for an answer that can be read here: compressed by gzip at most.
func acceptReadable(out *http.Request) {
	out.Header = out.Header.Clone()
	accepted := out.Header.Get("Accept-Encoding")
	switch {
	case accepted == "":
	case strings.Contains(accepted, "gzip"):
		out.Header.Set("Accept-Encoding", "gzip")
	default:
		out.Header.Set("Accept-Encoding", "identity")
	}
}

// acceptsOnlyReadable reports whether every encoding that a client accepts can be read here.
func acceptsOnlyReadable(h http.Header) bool {
	for encoding := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		name, _, _ := strings.Cut(encoding, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "", "identity", "gzip", "x-gzip", "deflate":
		default:
			return false
		}
	}
	return true
}
