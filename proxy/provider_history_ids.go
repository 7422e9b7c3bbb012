package proxy

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// A stream that several responses were joined into has one id for the client, that of the
// first. The provider holds the whole under the id of the last, so that requests which name
// the first must name the last. Only this process knows which is which.

// recordProviderID remembers the provider's id of a response under the client's.
func (s *lookupStream) recordProviderID() {
	m, ok := s.translator.(*dialect.ResponseStream)
	if !ok || m.FirstID == m.LastID {
		return
	}
	s.t.histories.providerIDs.Put(gjson.Parse(m.FirstID).Str, gjson.Parse(m.LastID).Str, 1)
}

// providerID is the provider's id of a response that the client names; empty if it is the
// same.
func (hs *histories) providerID(id string) string {
	last, _ := hs.providerIDs.Get(id)
	return last
}

// bodyForProvider is the client's body, with the previous response named by the provider's id.
func (hs *histories) bodyForProvider(x *received) string {
	if x.endpoint.dialect.API() != wire.Responses || x.request.Header.Get("Content-Encoding") != "" {
		return x.body
	}
	last := hs.providerID(gjson.Get(x.body, "previous_response_id").Str)
	if last == "" {
		return x.body
	}
	return jsonedit.Set(x.body, "previous_response_id", rawjson.Quote(last))
}

// requestForProvider is a request about a response, such as GET /v1/responses/ID, under the
// provider's id.
func (hs *histories) requestForProvider(r *http.Request) *http.Request {
	before, rest, found := strings.Cut(r.URL.Path, "/responses/")
	if !found || r.URL.RawPath != "" {
		return r
	}
	id, rest, deeper := strings.Cut(rest, "/")
	last := hs.providerID(id)
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
