package proxytest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// compaction names what a request has of the providers' own compaction; empty for nothing.
func compaction(q *Request, body gjson.Result) string {
	for _, name := range []string{"context_management", "compaction"} {
		if body.Get(name).Exists() {
			return name
		}
	}
	for _, line := range q.Header.Values("Anthropic-Beta") {
		for _, beta := range []string{"context-management-", "compact-"} {
			if strings.Contains(line, beta) {
				return "anthropic-beta: " + line
			}
		}
	}
	for i, m := range body.Get("messages").Array() {
		for k, b := range m.Get("content").Array() {
			if b.Get("type").Str == "compaction" {
				return fmt.Sprintf("messages.%d.content.%d", i, k)
			}
		}
	}
	for i, item := range body.Get("input").Array() {
		if strings.HasPrefix(item.Get("type").Str, "compaction") {
			return fmt.Sprintf("input[%d]", i)
		}
	}
	return ""
}

// Compaction is the answer of a provider that compacts by itself to a request that ends with a trigger
// (Responses): an item with the content. ok is false for other requests.
func Compaction(q *Request, content string) (a Answer, ok bool) {
	if q.API != wire.Responses {
		return a, false
	}
	r, err := native.ParseResponses(string(q.Body))
	if err != nil || r.Trigger == "" {
		return a, false
	}
	made := native.ResponsesAnswer{ID: fmt.Sprintf("resp_%d", q.N), Created: 1, Items: []string{native.CompactionItem(fmt.Sprintf("cmp_%d", q.N), content)}}
	if r.Stream {
		return Answer{Stream: made.Events(r)}, true
	}
	return Answer{Body: made.Response(r)}, true
}

// answerCount answers a request to count tokens of an Anthropic request, if there is a Count.
func (u *Upstream) answerCount(w http.ResponseWriter, q *Request) bool {
	if u.Count == nil || !strings.HasPrefix(q.Path, "/v1/messages/count_tokens") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	p, err := anthropic.Codec{}.Decode(string(q.Body))
	what := compaction(q, gjson.ParseBytes(q.Body))
	switch {
	case err != nil:
		q.Refused = err.Error()
	case u.NoCompaction && what != "":
		q.Refused = what + ": Extra inputs are not permitted"
	default:
		fmt.Fprintf(w, `{"input_tokens":%d}`, u.Count(p))
		return true
	}
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprint(w, refusal(wire.Anthropic, q.Refused))
	return true
}
