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
)

// conversationChange is a request that changes what a conversation of OpenAI's holds.
// https://platform.openai.com/docs/api-reference/conversations
type conversationChange struct {
	id   string                 // empty for a new conversation
	kind conversationChangeKind // empty for requests that change nothing
}

type conversationChangeKind string

const (
	conversationCreated   conversationChangeKind = "created"
	conversationExtended  conversationChangeKind = "extended"  // by items
	conversationShortened conversationChangeKind = "shortened" // items were deleted, or all of it
)

// conversationChangeOf says what a request does to a conversation.
func conversationChangeOf(r *http.Request) conversationChange {
	path := afterVersion(strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' }))
	if len(path) == 0 || path[0] != "conversations" {
		return conversationChange{}
	}
	switch {
	case r.Method == http.MethodPost && len(path) == 1:
		return conversationChange{kind: conversationCreated}
	case r.Method == http.MethodPost && len(path) == 3 && path[2] == "items":
		return conversationChange{path[1], conversationExtended}
	case r.Method == http.MethodDelete && len(path) > 1:
		return conversationChange{path[1], conversationShortened}
	}
	return conversationChange{}
}

// forwardConversationChange forwards a request that changes a conversation, and remembers what
// the conversation then holds. A change that cannot be read makes it unknown.
func (hs *histories) forwardConversationChange(r *http.Request, c conversationChange) (*http.Response, error) {
	var items []string
	known := c.kind != conversationShortened
	if known && r.Body != nil {
		body, whole, err := httpbody.Read[string](r.Body, maxResponse, nil)
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
