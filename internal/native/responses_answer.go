package native

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// ResponsesAnswer is the answer to a request for a compaction alone. Its usage is nothing: no
// model was asked with the client's key.
type ResponsesAnswer struct {
	// ID is that of the response. Created is in seconds since 1970.
	ID      string
	Created int64
	// Items are the output: the compaction, and for /responses/compact what is retained before
	// it.
	Items []string
}

// ItemID is the id of the item that holds a token.
func ItemID(content string) string { return "cmp_" + canonjson.Digest(content) }

// CompactionItem is the output item that stands for everything before it.
func CompactionItem(id, content string) string {
	return `{"id":` + rawjson.Quote(id) + `,"type":"compaction","encrypted_content":` + rawjson.Quote(content) + `}`
}

// RetainedMessages are the user's messages among the items, without recaps. They stand before the compaction in
// the output of /responses/compact.
func RetainedMessages(items []string) []string {
	var list []string
	for _, item := range items {
		kind := gjson.Get(item, "type").Str
		if (kind == "message" || kind == "") && !strings.HasPrefix(item, recapStart) && gjson.Get(item, "role").Str == "user" {
			list = append(list, outputMessage(item, len(list)))
		}
	}
	return list
}

// outputMessage gives an input message, the n-th, the form of an output message.
func outputMessage(item string, n int) string {
	v := gjson.Parse(item)
	content := v.Get("content")
	text := cmp.Or(content.Raw, "[]")
	if content.Type == gjson.String {
		text = `[{"type":"input_text","text":` + content.Raw + `}]`
	}
	if content.IsArray() && v.Get("id").Exists() && v.Get("type").Exists() && v.Get("status").Exists() {
		return item
	}
	id := v.Get("id").Raw
	if id == "" {
		sum := sha256.Sum256([]byte(strconv.Itoa(n) + item)) // a provider refuses the same id twice in one input
		id = `"msg_` + hex.EncodeToString(sum[:12]) + `"`
	}
	return `{"id":` + id + `,"type":"message","status":"completed","role":"user","content":` + text + `}`
}

const noUsage = `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`

// CompactedBody answers POST /v1/responses/compact.
func (a ResponsesAnswer) CompactedBody() string {
	return `{"id":` + rawjson.Quote(a.ID) + `,"object":"response.compaction","created_at":` + strconv.FormatInt(a.Created, 10) +
		`,"output":[` + strings.Join(a.Items, ",") + `],"usage":` + noUsage + `}`
}

// repeatedMembers are the members of a request that its response repeats, with the values of
// absent ones.
var repeatedMembers = []struct{ name, fallback string }{
	{"instructions", "null"}, {"max_output_tokens", "null"}, {"metadata", "{}"}, {"model", `""`},
	{"parallel_tool_calls", "true"}, {"previous_response_id", "null"}, {"reasoning", "null"}, {"store", "true"},
	{"temperature", "null"}, {"tool_choice", `"auto"`}, {"tools", "[]"}, {"top_p", "null"}, {"truncation", `"disabled"`},
}

// response is the response to a trigger.
func (a ResponsesAnswer) response(r *Responses, status string) string {
	var b strings.Builder
	b.WriteString(`{"id":` + rawjson.Quote(a.ID) + `,"object":"response","created_at":` + strconv.FormatInt(a.Created, 10) +
		`,"status":"` + status + `","background":false,"error":null,"incomplete_details":null`)
	for _, e := range repeatedMembers {
		var value bytes.Buffer // an event is one line
		if json.Compact(&value, []byte(r.top.Get(e.name).Raw)) != nil {
			value.WriteString(e.fallback)
		}
		b.WriteString(`,"` + e.name + `":` + value.String())
	}
	if status == "completed" {
		b.WriteString(`,"output":[` + strings.Join(a.Items, ",") + `],"usage":` + noUsage + `}`)
	} else {
		b.WriteString(`,"output":[],"usage":null}`)
	}
	return b.String()
}

// Response answers a trigger without a stream.
func (a ResponsesAnswer) Response(r *Responses) string { return a.response(r, "completed") }

// Events is the stream that answers a trigger.
func (a ResponsesAnswer) Events(r *Responses) string {
	var b strings.Builder
	n := 0
	event := func(kind, rest string) {
		b.WriteString("event: " + kind + "\ndata: {\"type\":\"" + kind + "\",\"sequence_number\":" + strconv.Itoa(n) + "," + rest + "}\n\n")
		n++
	}
	event("response.created", `"response":`+a.response(r, "in_progress"))
	event("response.in_progress", `"response":`+a.response(r, "in_progress"))
	for i, item := range a.Items {
		place := `"output_index":` + strconv.Itoa(i) + `,"item":` + item
		event("response.output_item.added", place)
		event("response.output_item.done", place)
	}
	event("response.completed", `"response":`+a.response(r, "completed"))
	return b.String()
}
