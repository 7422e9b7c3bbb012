package native

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// BetaThreads is the beta of message threads, which is named with a request that holds
// its conversation itself no more.
const BetaThreads = "message-threads-2026-08-12"

// Thread is the message that a request of a message thread goes on with, empty where
// it begins the thread; false where the request is of no thread, or of a form that is not
// known here.
func (m *Messages) Thread() (previous string, ok bool) {
	switch t := m.top.Get("thread"); t.Get("type").Str {
	case "create":
		return "", true
	case "continue":
		previous = t.Get("previous_message_id").Str
		return previous, previous != ""
	}
	return "", false
}

// firstRequestMembers are the members that the first request of a thread has, and no other.
var firstRequestMembers = []string{"system", "tools"}

// ThreadMembers are the members of the body that hold for the whole thread, as an object.
func (m *Messages) ThreadMembers() string {
	var out object
	for _, name := range firstRequestMembers {
		if v := m.top.Get(name); v.Exists() {
			out = out.with(name, v.Raw)
		}
	}
	return out.String()
}

// WithHistory is the request with other messages, as one that holds its conversation itself:
// around are the members of the request that began the thread, which count where this
// one has none.
func (m *Messages) WithHistory(around string, messages []string) string {
	out := m.top.without("thread", "messages")
	for _, name := range firstRequestMembers {
		if v := gjson.Get(around, name); v.Exists() && !m.top.Get(name).Exists() {
			out = out.with(name, v.Raw)
		}
	}
	return out.with("messages", rawjson.Array(messages)).String()
}

// WithoutCacheMarks are the messages without their cache marks: a request may have few, and a
// conversation that is put together of many requests would have those of all. marked is
// the time to live of the last of them, empty for the provider's default; nil where there was none.
func (m *Messages) WithoutCacheMarks() (messages []string, marked *string) {
	for _, v := range m.top.Get("messages").Array() {
		raw := v.Raw
		if strings.Contains(raw, `"cache_control"`) {
			var ttl *string
			if raw, ttl = dropCacheMarks(raw, "content", 2); ttl != nil {
				marked = ttl
			}
		}
		messages = append(messages, raw)
	}
	return messages, marked
}

// dropCacheMarks takes the cache marks out of the blocks of a list, and out of the blocks in
// these.
func dropCacheMarks(doc, list string, levels int) (out string, ttl *string) {
	for i, block := range gjson.Get(doc, list).Array() {
		at := list + "." + strconv.Itoa(i)
		if mark := block.Get("cache_control"); mark.Exists() {
			if mark.IsObject() {
				own := mark.Get("ttl").Str
				ttl = &own
			}
			doc = jsonedit.Delete(doc, at+".cache_control")
		}
		if levels > 1 && block.Get("content").IsArray() {
			var inner *string
			if doc, inner = dropCacheMarks(doc, at+".content", levels-1); inner != nil && ttl == nil {
				ttl = inner
			}
		}
	}
	return doc, ttl
}
