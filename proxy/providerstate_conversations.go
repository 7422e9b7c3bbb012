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

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
)

// conversationChange is a request about a conversation of OpenAI's that changes what is in it.
// https://platform.openai.com/docs/api-reference/conversations
type conversationChange struct {
	id   string // empty for a new one
	kind string // how it changes; empty for requests that change nothing
}

// The ways in which a conversation changes.
const (
	conversationCreated   = "begun"
	conversationExtended  = "grown"   // by items
	conversationShortened = "cutdown" // items were deleted, or all of it
)

// conversationChangeOf reads what a request does to a conversation.
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

// forwardConversationChange sends a request about a conversation on, and remembers what the conversation
// holds from then on. What cannot be read is not known any more.
func (t *Transport) forwardConversationChange(r *http.Request, c conversationChange) (*http.Response, error) {
	var items []string
	known := c.kind != conversationShortened
	if known && r.Body != nil {
		body, whole, err := readBody[string](r.Body, maxResponse, nil)
		if err != nil {
			return nil, err
		}
		if r.Body = rejoinBody(body, nil, r.Body, r.Body); whole {
			plain, err := decompress(r.Header, body, maxResponse, nil)
			known = err == nil && rawjson.Valid(plain)
			items = rawElements(gjson.Get(plain, "items"))
		} else {
			known = false
		}
	}
	if c.kind == conversationCreated {
		acceptReadable(r) // its id is in the answer
	}
	res, err := t.options.Base.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	if c.kind == conversationCreated {
		if raw, all := readAnswer(res); all {
			body, err := decompress(res.Header, raw, maxAnswer, nil)
			if c.id = gjson.GetBytes(body, "id").Str; err != nil {
				c.id = ""
			}
		}
	}
	x := &exchange{t: t, request: r, start: time.Now()}
	x.recordLink(nil, c.id, func(ctx context.Context) error {
		return t.responses.update(ctx, c.id, func(now *storedResponse) *storedResponse {
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

// addToConversation puts into a conversation what the provider would have put there by itself, had it
// been asked for the answer in the conversation's name: the client can list it then, and the provider
// holds the whole whatever becomes of us.
func (x *exchange) addToConversation(ctx context.Context, id string, items []string) error {
	items = slices.DeleteFunc(slices.Clone(items), func(item string) bool { return strings.Contains(item, native.Prefix) })
	for some := range slices.Chunk(items, maxItems) {
		r := x.request.Clone(ctx)
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "/responses") + "/conversations/" + id + "/items"
		r.URL.RawPath = ""
		r.Header.Del("Content-Encoding")
		r.Header.Del("Idempotency-Key") // that of the answer
		r.Header.Set("Content-Type", jsonKind)
		body := []byte(`{"items":[` + strings.Join(some, ",") + `]}`)
		res, err := x.t.options.Base.RoundTrip(withBody(r, len(body), func() io.Reader { return bytes.NewReader(body) }))
		if err != nil {
			return fmt.Errorf("conversation %s: %w", id, err)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // so that the connection can be used again
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("conversation %s: its provider did not take %d items: status %d", id, len(some), res.StatusCode)
		}
	}
	return nil
}
