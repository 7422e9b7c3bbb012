package proxy

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// A stream of several responses has for the client one id, that of the first. What
// the provider holds of the whole, it holds under that of the last: requests that
// name the first must name the last. This is known to the process alone.

// renames has the provider's id found by the client's.
func (s *stream) renames() {
	m, ok := s.translator.(*responseStream)
	if !ok || m.id == m.last {
		return
	}
	s.x.t.renamed.remember(thread.ID(gjson.Parse(m.id).Str), gjson.Parse(m.last).Str)
}

// heldAs is the provider's id of a response that the client names; empty where it
// is the same.
func (t *Transport) heldAs(id string) string {
	if id == "" {
		return ""
	}
	return t.renamed.find("", []thread.ID{thread.ID(id)})
}

// following names the response that a request goes on with as the provider does.
func (x *exchange) following() []byte {
	if x.endpoint.dialect.API() != wire.Responses || x.request.Header.Get("Content-Encoding") != "" {
		return x.original
	}
	last := x.t.heldAs(gjson.GetBytes(x.original, "previous_response_id").Str)
	if last == "" {
		return x.original
	}
	return []byte(set(string(x.original), "previous_response_id", rawjson.Quote(last)))
}

// asHeld is a request about a response, such as GET /v1/responses/ID, under the
// provider's id.
func (t *Transport) asHeld(r *http.Request) *http.Request {
	before, rest, found := strings.Cut(r.URL.Path, "/responses/")
	if !found || r.URL.RawPath != "" {
		return r
	}
	id, rest, deeper := strings.Cut(rest, "/")
	last := t.heldAs(id)
	if last == "" {
		return r
	}
	if deeper {
		last += "/"
	}
	out, u := *r, *r.URL
	u.Path = before + "/responses/" + last + rest
	out.URL = &u
	return &out
}
