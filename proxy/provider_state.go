package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
)

// forwardConversationChange forwards a request that changes a conversation, and remembers what
// the conversation then holds. A change that cannot be read makes it unknown.
func (hs *histories) forwardConversationChange(r *http.Request, c conversationChange) (*http.Response, error) {
	var items []string
	known := c.kind != conversationShortened
	if known && r.Body != nil {
		body, whole, err := httpbody.Read[string](r.Body, maxResponse, 0, nil)
		if err != nil {
			return nil, err
		}
		if r.Body = httpbody.Rejoin(body, nil, r.Body, r.Body); whole {
			plain, err := httpbody.Decompress(r.Header, body, maxResponse, nil)
			known = err == nil && rawjson.Valid(plain)
			items = rawjson.RawItems(gjson.Get(plain, "items"), nil)
		} else {
			known = false
		}
	}
	if c.kind == conversationCreated {
		httpbody.AcceptReadable(r) // the answer has the id
	}
	res, err := send(hs.options.Base, r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	if c.kind == conversationCreated {
		if body, err := httpbody.ReadAnswer(res); err == nil {
			c.id = gjson.GetBytes(body, "id").Str
		}
	}
	x := &received{request: r, start: time.Now()}
	hs.recordLink(x, nil, c.id, func(ctx context.Context) error {
		return hs.responses.update(ctx, c.id, func(now *storedResponse) *storedResponse {
			switch {
			case !known, c.kind == conversationExtended && now == nil:
				return nil
			case c.kind == conversationCreated:
				return &storedResponse{Made: x.start.UnixNano(), Input: rawMessages(items)}
			}
			next := *now
			next.Made, next.Input = x.start.UnixNano(), slices.Concat(now.Input, rawMessages(items))
			return &next
		})
	})
	return res, nil
}

// A stream that several responses were joined into has one id for the client, that of the
// first. The provider holds the whole under the id of the last, so that requests which name
// the first must name the last. Only this process knows which is which.

// recordProviderID remembers the provider's id of a response under the client's.
func (s *lookupStream) recordProviderID() {
	m, ok := s.translator.(*dialect.ResponseStream)
	if !ok || m.FirstID == m.LastID {
		return
	}
	s.providerIDs.Put(gjson.Parse(m.FirstID).Str, gjson.Parse(m.LastID).Str, 1)
}

// requestForProvider is a request about a response, such as GET /v1/responses/ID, under the
// provider's id.
func (hs *histories) requestForProvider(r *http.Request) *http.Request {
	before, rest, found := strings.Cut(r.URL.Path, "/responses/")
	if !found || r.URL.RawPath != "" {
		return r
	}
	id, rest, deeper := strings.Cut(rest, "/")
	last, other := hs.providerIDs.Get(id)
	if !other {
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
