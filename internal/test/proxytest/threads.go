package proxytest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// threadsBeta must be named with every request of a thread.
const threadsBeta = "message-threads-2026-08-12"

// withThread is the body with the history of its thread. A message can be continued only once.
func (k *chainStore) withThread(header http.Header, body []byte) (full []byte, status int, said string) {
	of := gjson.GetBytes(body, "thread")
	named := strings.Contains(strings.Join(header.Values("Anthropic-Beta"), ","), threadsBeta)
	switch {
	case !of.IsObject() && named:
		return nil, http.StatusBadRequest, refusal(wire.Anthropic, "anthropic-beta: "+threadsBeta+" without a thread")
	case !of.IsObject():
		return body, 0, ""
	case !named:
		return nil, http.StatusBadRequest, refusal(wire.Anthropic, "thread: Extra inputs are not permitted")
	}
	for _, p := range (anthropic.Codec{}).Validate(body) {
		if !p.Advice {
			return nil, http.StatusBadRequest, refusal(wire.Anthropic, p.Error())
		}
	}
	full, _ = sjson.DeleteBytes(body, "thread")
	if of.Get("type").Str == "create" {
		return full, 0, ""
	}
	previous := of.Get("previous_message_id").Str
	k.mu.Lock()
	defer k.mu.Unlock()
	items, known := k.items[previous]
	switch {
	case !known:
		return nil, http.StatusNotFound, threadError("not_found_error", "thread_not_found")
	case k.continued[previous]:
		return nil, http.StatusBadRequest, threadError("invalid_request_error", "thread_already_continued")
	}
	if k.continued == nil {
		k.continued = map[string]bool{}
	}
	k.continued[previous] = true
	for i, name := range []string{"system", "tools"} {
		if items[i] != "" {
			full, _ = sjson.SetRawBytes(full, name, []byte(items[i]))
		}
	}
	messages := append(items[2:len(items):len(items)], elements(gjson.GetBytes(body, "messages"))...)
	full, _ = sjson.SetRawBytes(full, "messages", []byte("["+strings.Join(messages, ",")+"]"))
	return full, 0, ""
}

func threadError(kind, code string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":"thread: previous_message_id: %s","details":{"error_code":%q}}}`, kind, code, code)
}

// keepThread holds the thread of an answer, if the request has one.
func (k *chainStore) keepThread(id string, body, full []byte, answer string) {
	if !gjson.GetBytes(body, "thread").IsObject() {
		return
	}
	items := []string{gjson.GetBytes(full, "system").Raw, gjson.GetBytes(full, "tools").Raw}
	for _, m := range elements(gjson.GetBytes(full, "messages")) {
		if content := gjson.Get(m, "content"); content.IsArray() {
			m, _ = sjson.SetRaw(m, "content", withoutMarks(content.Raw)) // which are of that request only
		}
		items = append(items, m)
	}
	items = append(items, `{"role":"assistant","content":`+gjson.Get(answer, "content").Raw+`}`)
	k.put(id, items)
}

func elements(list gjson.Result) []string {
	var out []string
	for _, v := range list.Array() {
		out = append(out, v.Raw)
	}
	return out
}
