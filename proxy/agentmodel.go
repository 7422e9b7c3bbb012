package proxy

import (
	"net/http"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
)

// agentDeadline bounds how long a request waits for a summary by the agent's own model: more than
// summarizers take, and less than clients wait.
const agentDeadline = 3 * time.Minute

// agentModel is a client of the model that the request asks; nil without Options.Agent.
func (st *stepper) agentModel(x *received, r *parsedRequest) llm.Generator {
	if st.options.Agent == nil {
		return nil
	}
	name := x.modelName(r)
	g, err := st.options.Agent(x.endpoint.dialect.API(), name, &http.Client{Transport: agentTransport{x.request, st.options.Base}})
	if err != nil {
		st.emitFault(x, "agent", err, nil)
		return nil
	}
	return g
}

// agentTransport sends requests to the agent's provider, with the headers of the agent's request. Its
// credentials are read from that each time, and kept nowhere.
type agentTransport struct {
	request *http.Request
	base    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b agentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	own := withoutOurHeaders(b.request)
	out := r.Clone(r.Context())
	address := *own.URL
	address.Path = strings.TrimSuffix(address.Path, "/compact") // a request for a compaction goes below the model's path
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
	return send(b.base, out)
}
