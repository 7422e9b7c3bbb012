package proxy

import (
	"cmp"
	"context"
	"slices"

	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func (cv *conversations) loadHistory(ctx context.Context, h loggedHistory) ([]thread.Message, error) {
	if h.Log == "" {
		return nil, nil
	}
	log, err := cv.log.Load(ctx, h.Log)
	if err != nil {
		return nil, err
	}
	if h.At < 1 || h.At > log.Len() || log.At(h.At-1).ID != h.Last {
		return nil, errHistoryChanged
	}
	return log.Messages()[:h.At:h.At], nil
}

// maxAsked bounds the requests of which the model is known: a credit token holds for minutes.
const maxAsked = 1000

// parseRequest decodes the request. It is nil if that cannot be done, for the reason.
func (cv *conversations) parseRequest(ctx context.Context, x *received) (r *parsedRequest, reason string, err error) {
	if h := x.held; h != nil && h.rebuilt != nil {
		r, err := cv.parseRebuilt(ctx, x, h.rebuilt)
		if err != nil {
			return nil, "", err
		}
		return r, string(r.kind), nil
	}
	if x.decompressErr != nil {
		return nil, "encoding", nil
	}
	found, err := cv.requests.Read(x.endpoint.dialect, x.plain, ctx.Err)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, "", ctx.Err()
	case err != nil:
		return nil, "format", nil
	}
	r = cv.identifyRequest(ctx, x, found, x.plain.Len())
	r.kind = identify.KindOf(found, x.request.Header.Get)
	return r, string(r.kind), nil
}

// parseRebuilt is parseRequest for a rebuilt request.
func (cv *conversations) parseRebuilt(ctx context.Context, x *received, from *rebuiltRequest) (*parsedRequest, error) {
	before, err := cv.loadHistory(ctx, from.loggedHistory)
	if err != nil {
		return nil, err
	}
	found, size, err := identify.ReadContinued(x.endpoint.dialect, from.body, before, from.retained, ctx.Err)
	if err != nil {
		return nil, err
	}
	r := cv.identifyRequest(ctx, x, found, size)
	if from.Log != "" {
		r.base = from.Log
	}
	if !from.mustReplaceBody && identify.RefersToItems(r.Request) {
		r.kind = identify.ServerSide
	}
	return r, nil
}

// rebuiltRequest is a request with its history put back in, from the log and from stored answers.
type rebuiltRequest struct {
	loggedHistory
	// body is the request, with what follows the logged history as its input.
	body string
	// mustReplaceBody says that the provider could not answer the client's own bytes, so that
	// the rendering goes out in any case.
	mustReplaceBody bool
	// retained is how many messages at the beginning of the body stood before the
	// compaction. Those that the log holds are not new.
	retained int
	// fallback are the items of a request that needs no log; nil if the client's own will do.
	fallback []string
}

// identifyRequest names the client and the conversation of a request.
func (cv *conversations) identifyRequest(ctx context.Context, x *received, r *identify.Request, size int) *parsedRequest {
	name, retries := cv.countedModel(cmp.Or(x.endpoint.model, r.Prompt.Model), r)
	model := cv.models.modelNow(ctx, x, name)
	out := &parsedRequest{Request: r, model: model, retriesRefused: retries, bytes: size}
	out.client = identify.ClientOf(r, x.request.Header.Get, model.Name, x.thread)
	if len(r.IDs) > 0 {
		out.base = out.client.Base(r)
	}
	return out
}

// countedModel is the model whose conversation a request belongs to: the one that it asks. A retry on another model
// under the credit token of a refusal is taken for nothing but the refused request, with the partial answer behind
// it or without, so that it goes on as that one did, under its plan.
// https://docs.anthropic.com/en/api/messages (fallback_credit_token)
func (cv *conversations) countedModel(name string, r *identify.Request) (model string, retriesRefused bool) {
	token := r.Has("fallback_credit_token")
	for n, id := range slices.Backward(r.IDs) {
		if !token {
			cv.asked.Put(id, name, 1)
			break
		}
		if refused, ok := cv.asked.Get(id); ok {
			return refused, true
		}
		if n < len(r.IDs)-1 {
			break
		}
	}
	return name, false
}
