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

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// ResponsesAnswer is the answer to a request that asks for nothing but a
// compaction.
type ResponsesAnswer struct {
	// ID is of the response, Created when it was made in seconds since 1970.
	ID      string
	Created int64
	// Items are the output: for a trigger the compaction alone, for
	// /responses/compact what is retained before it.
	Items []string
	// InputTokens and Output are the tokens that models took for it: none where no model
	// was asked.
	InputTokens, OutputTokens int
}

// CompactionItem is the output item that stands for everything before it.
func CompactionItem(id, content string) string {
	return `{"id":` + rawjson.Quote(id) + `,"type":"compaction","encrypted_content":` + rawjson.Quote(content) + `}`
}

// RetainedMessages are the items that stand beside a compaction in the output of
// /responses/compact: all messages of the user's, in their order.
func RetainedMessages(items []string) []string {
	var list []string
	for _, item := range items {
		kind := gjson.Get(item, "type").Str
		if (kind == "message" || kind == "") && gjson.Get(item, "role").Str == "user" {
			list = append(list, outputMessage(item, len(list)))
		}
	}
	return list
}

// outputMessage gives a message the form that messages have in an output.
func outputMessage(item string, n int) string {
	v := gjson.Parse(item)
	content := v.Get("content")
	text := cmp.Or(content.Raw, "[]") // one without is kept as one that says nothing
	if content.Type == gjson.String {
		text = `[{"type":"input_text","text":` + content.Raw + `}]`
	}
	if content.IsArray() && v.Get("id").Exists() && v.Get("type").Exists() && v.Get("status").Exists() {
		return item
	}
	id := v.Get("id").Raw
	if id == "" {
		sum := sha256.Sum256([]byte(strconv.Itoa(n) + item)) // a provider refuses an id twice in one input
		id = `"msg_` + hex.EncodeToString(sum[:12]) + `"`
	}
	return `{"id":` + id + `,"type":"message","status":"completed","role":"user","content":` + text + `}`
}

func (a ResponsesAnswer) usage() string {
	return `{"input_tokens":` + strconv.Itoa(a.InputTokens) + `,"input_tokens_details":{"cached_tokens":0},"output_tokens":` + strconv.Itoa(a.OutputTokens) +
		`,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":` + strconv.Itoa(a.InputTokens+a.OutputTokens) + `}`
}

// CompactedBody is the body that answers POST /v1/responses/compact.
func (a ResponsesAnswer) CompactedBody() string {
	return `{"id":` + rawjson.Quote(a.ID) + `,"object":"response.compaction","created_at":` + strconv.FormatInt(a.Created, 10) +
		`,"output":[` + strings.Join(a.Items, ",") + `],"usage":` + a.usage() + `}`
}

// repeatedMembers are the members of a request that its response repeats, with what they
// are where the request does not name them.
var repeatedMembers = []struct{ name, fallback string }{
	{"instructions", "null"}, {"max_output_tokens", "null"}, {"metadata", "{}"}, {"model", `""`},
	{"parallel_tool_calls", "true"}, {"previous_response_id", "null"}, {"reasoning", "null"}, {"store", "true"},
	{"temperature", "null"}, {"tool_choice", `"auto"`}, {"tools", "[]"}, {"top_p", "null"}, {"truncation", `"disabled"`},
}

// response is the response object of a trigger.
func (a ResponsesAnswer) response(r *Responses, status string) string {
	var b strings.Builder
	b.WriteString(`{"id":` + rawjson.Quote(a.ID) + `,"object":"response","created_at":` + strconv.FormatInt(a.Created, 10) +
		`,"status":"` + status + `","background":false,"error":null,"incomplete_details":null`)
	for _, e := range repeatedMembers {
		var value bytes.Buffer // an event is one line
		if json.Compact(&value, []byte(r.member(e.name))) != nil {
			value.WriteString(e.fallback)
		}
		b.WriteString(`,"` + e.name + `":` + value.String())
	}
	if status == "completed" {
		b.WriteString(`,"output":[` + strings.Join(a.Items, ",") + `],"usage":` + a.usage() + `}`)
	} else {
		b.WriteString(`,"output":[],"usage":null}`)
	}
	return b.String()
}

// Response is the body that answers a trigger without a stream.
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
