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

// conversation is a request about a conversation of OpenAI's that changes what is in it.
// https://platform.openai.com/docs/api-reference/conversations
type conversation struct {
	id     string // empty for a new one
	change string // how it changes; empty for requests that change nothing
}

// The ways in which a conversation changes.
const (
	begun   = "begun"
	grown   = "grown"   // by items
	cutDown = "cutdown" // items were deleted, or all of it
)

// conversationOf reads what a request does to a conversation.
func conversationOf(r *http.Request) conversation {
	path := afterVersion(strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' }))
	if len(path) == 0 || path[0] != "conversations" {
		return conversation{}
	}
	switch {
	case r.Method == http.MethodPost && len(path) == 1:
		return conversation{change: begun}
	case r.Method == http.MethodPost && len(path) == 3 && path[2] == "items":
		return conversation{path[1], grown}
	case r.Method == http.MethodDelete && len(path) > 1:
		return conversation{path[1], cutDown}
	}
	return conversation{}
}

// conversed sends a request about a conversation on, and remembers what the conversation
// holds from then on. What cannot be read is not known any more.
func (t *Transport) conversed(r *http.Request, c conversation) (*http.Response, error) {
	var items []string
	known := c.change != cutDown
	if known && r.Body != nil {
		body, whole, err := readBody[string](r.Body, maxResponse, nil)
		if err != nil {
			return nil, err
		}
		if r.Body = again(body, nil, r.Body, r.Body); whole {
			plain, err := decoded(r.Header, body, maxResponse, nil)
			known = err == nil && rawjson.Valid(plain)
			items = elements(gjson.Get(plain, "items"))
		} else {
			known = false
		}
	}
	if c.change == begun {
		readable(r) // its id is in the answer
	}
	res, err := t.options.Base.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	if c.change == begun {
		if raw, all := readAnswer(res); all {
			body, err := decoded(res.Header, raw, maxAnswer, nil)
			if c.id = gjson.GetBytes(body, "id").Str; err != nil {
				c.id = ""
			}
		}
	}
	x := &exchange{t: t, request: r, start: time.Now()}
	x.linked(nil, c.id, func(ctx context.Context) error {
		return t.responses.become(ctx, c.id, func(now *response) *response {
			switch {
			case !known, c.change == grown && now == nil:
				return nil
			case c.change == begun:
				return &response{Made: x.start.UnixNano(), Input: raws(items)}
			}
			next := *now
			next.Made, next.Input = x.start.UnixNano(), slices.Concat(now.Input, raws(items))
			return &next
		})
	})
	return res, nil
}

// maxItems is how many items a conversation takes at once.
const maxItems = 20

// handOver puts into a conversation what the provider would have put there by itself, had it
// been asked for the answer in the conversation's name: the client can list it then, and the provider
// holds the whole whatever becomes of us.
func (x *exchange) handOver(ctx context.Context, id string, items []string) error {
	items = slices.DeleteFunc(slices.Clone(items), func(item string) bool { return strings.Contains(item, native.Prefix) })
	for some := range slices.Chunk(items, maxItems) {
		r := x.request.Clone(ctx)
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "/responses") + "/conversations/" + id + "/items"
		r.URL.RawPath = ""
		r.Header.Del("Content-Encoding")
		r.Header.Del("Idempotency-Key") // that of the answer
		r.Header.Set("Content-Type", jsonKind)
		body := []byte(`{"items":[` + strings.Join(some, ",") + `]}`)
		res, err := x.t.options.Base.RoundTrip(outgoing(r, len(body), func() io.Reader { return bytes.NewReader(body) }))
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
