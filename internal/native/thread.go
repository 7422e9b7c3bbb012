package native

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// BetaThreads is the beta of message threads. A request that holds its own conversation may not
// name it.
const BetaThreads = "message-threads-2026-08-12"

// Thread returns the message that a request continues in a message thread, empty if it begins the
// thread. ok is false if it has no thread, or one of an unknown form.
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

// firstRequestMembers are members that only the first request of a thread has.
var firstRequestMembers = []string{"system", "tools"}

// ThreadMembers are the members that hold for the whole thread, as an object.
func (m *Messages) ThreadMembers() string {
	var out rawjson.Object
	for _, name := range firstRequestMembers {
		out.Raw(name, m.top.Get(name).Raw)
	}
	return out.String()
}

// WithHistory is the request with other messages and without a thread. threadMembers are those of
// the request that began the thread; members of this one take precedence.
func (m *Messages) WithHistory(threadMembers string, messages []string) string {
	members := []string{"thread", "", "messages", rawjson.Array(messages)}
	for _, name := range firstRequestMembers {
		if v := gjson.Get(threadMembers, name); v.Exists() && !m.top.Get(name).Exists() {
			members = append(members, name, v.Raw)
		}
	}
	return withMembers(m.body, members...)
}

// WithoutCacheMarks are the messages without their cache marks: a request may have few, and a
// conversation put together of many requests would have those of all. lastTTL is the time to live
// of the last mark, empty for the provider's default; nil if there was none.
func (m *Messages) WithoutCacheMarks() (messages []string, lastTTL *string) {
	for _, v := range m.top.Get("messages").Array() {
		raw := v.Raw
		if strings.Contains(raw, `"cache_control"`) {
			var ttl *string
			if raw, ttl = dropCacheMarks(raw, "content", 2); ttl != nil {
				lastTTL = ttl
			}
		}
		messages = append(messages, raw)
	}
	return messages, lastTTL
}

// dropCacheMarks takes the cache marks out of the blocks of a list, and of the blocks in them.
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
