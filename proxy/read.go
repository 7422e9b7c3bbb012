package proxy

import (
	"cmp"
	"context"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/token"
)

// parsedRequest is a request whose body was decoded.
type parsedRequest struct {
	*identify.Request
	kind      identify.Kind
	client    identify.Client
	userAgent string
	model     token.Model
	base      string // the id of its conversation, before any fork
	bytes     int    // with its whole conversation
	// isSummary says that the client asks for a summary of its own history. The conversation
	// does not continue with this question.
	isSummary bool
}

// parseRequest decodes the request. It is nil if that cannot be done, for the reason.
func (ps *parser) parseRequest(ctx context.Context, x *received) (r *parsedRequest, reason string, err error) {
	if h := x.held; h != nil && h.rebuilt != nil {
		r, err := ps.parseRebuilt(ctx, x, h.rebuilt)
		if err != nil {
			return nil, "", err
		}
		return r, string(r.kind), nil
	}
	if x.decompressErr != nil {
		return nil, "encoding", nil
	}
	if !canBeHeld(x.plainBody) {
		return nil, reasonTooLarge, nil
	}
	similar := x.similar
	if similar.Body != x.plainBody {
		similar = identify.Similar{Body: x.plainBody}
	}
	found, err := ps.requests.Read(x.endpoint.dialect, similar, ctx.Err)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, "", ctx.Err()
	case err != nil:
		return nil, "format", nil
	}
	r = ps.identifyRequest(ctx, x, found, len(x.plainBody))
	r.kind = identify.KindOf(found, x.request.Header.Get)
	return r, string(r.kind), nil
}

// identifyRequest names the client and the conversation of a request.
func (ps *parser) identifyRequest(ctx context.Context, x *received, r *identify.Request, size int) *parsedRequest {
	model := ps.models.modelNow(ctx, x, cmp.Or(x.endpoint.model, r.Prompt.Model))
	out := &parsedRequest{Request: r, model: model, bytes: size, userAgent: x.request.UserAgent()}
	out.client = identify.ClientOf(r, x.request.Header.Get, model.Name, x.request.Header.Get(ThreadHeader))
	if len(r.IDs) > 0 {
		out.base = out.client.Base(r)
	}
	return out
}

// parsedOr returns r, or parses the request if r is nil. The result is nil if that cannot be
// done, with the reason or an error.
func (ps *parser) parsedOr(ctx context.Context, x *received, r *parsedRequest) (*parsedRequest, string, error) {
	if r != nil {
		return r, "", nil
	}
	return ps.parseRequest(ctx, x)
}

// modelName is the model that the request asks for. Without a parsed request the body is
// searched.
func (x *received) modelName(r *parsedRequest) string {
	switch {
	case x.endpoint.model != "":
		return x.endpoint.model
	case r != nil:
		return r.Prompt.Model
	}
	return gjson.Get(x.plainBody, "model").Str
}
