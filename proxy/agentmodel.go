package proxy

import (
	"net/http"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
)

// agentDeadline is how long a request may wait for a summary that the agent's own model
// writes: longer than a summarizer is waited for, and less than clients wait.
const agentDeadline = 3 * time.Minute

// agentModel is a client of the model that the request asks; nil where that is not used.
func (x *exchange) agentModel(r *parsedRequest) llm.Generator {
	if x.t.options.Agent == nil {
		return nil
	}
	name := x.modelName(r)
	g, err := x.t.options.Agent(x.endpoint.dialect.API(), name, &http.Client{Transport: agentTransport{x}})
	if err != nil {
		x.emitFault("agent", err, nil)
		return nil
	}
	return g
}

// agentTransport sends requests to where the agent's request goes, as the agent: with its
// headers, its credentials among them, which are read from it each time and kept nowhere.
type agentTransport struct{ x *exchange }

// RoundTrip implements http.RoundTripper.
func (b agentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	own := withoutOurHeaders(b.x.request)
	out := r.Clone(r.Context())
	address := *own.URL
	address.Path = strings.TrimSuffix(address.Path, "/compact") // what asks for a compaction stands below what asks the model
	address.RawPath = ""
	out.URL, out.Host = &address, own.Host
	out.Header = own.Header.Clone()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Accept-Encoding", "Idempotency-Key"} {
		out.Header.Del(name)
	}
	for _, name := range []string{"Content-Type", "Accept"} { // of this body
		if values, ok := r.Header[name]; ok {
			out.Header[name] = values
		}
	}
	return b.x.t.options.Base.RoundTrip(out)
}
