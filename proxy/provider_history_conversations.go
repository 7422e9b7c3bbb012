package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
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

// maxItems is how many items a conversation takes at once.
const maxItems = 20

// addToConversation puts items into a conversation that the provider would have put there by
// itself, had the request named the conversation. The client can then list them, and the
// provider holds the whole without us.
func addToConversation(ctx context.Context, base http.RoundTripper, continued *http.Request, id string, items []string) error {
	items = slices.DeleteFunc(slices.Clone(items), func(item string) bool { return strings.Contains(item, native.Prefix) })
	for some := range slices.Chunk(items, maxItems) {
		r := continued.Clone(ctx)
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "/responses") + "/conversations/" + id + "/items"
		r.URL.RawPath = ""
		r.Header.Del("Content-Encoding")
		r.Header.Del("Idempotency-Key") // it is that of the request for the answer
		r.Header.Set("Content-Type", httpbody.JSON)
		body := []byte(`{"items":[` + strings.Join(some, ",") + `]}`)
		res, err := send(base, withBody(r, len(body), func() io.Reader { return bytes.NewReader(body) }))
		if err != nil {
			return fmt.Errorf("conversation %s: %w", id, err)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, httpbody.MaxAnswer)) // so that the connection can be used again
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("conversation %s: %d items: %w", id, len(some), &llm.APIError{Kind: llm.ErrResponse, Status: res.StatusCode})
		}
	}
	return nil
}
