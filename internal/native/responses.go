package native

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Responses is a request of OpenAI's Responses API (POST /v1/responses and
// /v1/responses/compact), with what it says of the provider's own compaction and of a history
// that the provider keeps.
type Responses struct {
	// Items are the input without the trigger, each as the client wrote it. A text is one
	// message.
	Items []string
	// Trigger is the item compaction_trigger that the input ends with, as the client wrote it;
	// empty if there is none.
	Trigger string
	// Managed: context_management asks for compaction. Threshold is its compact_threshold, in
	// tokens; 0 if it names none.
	Managed   bool
	Threshold int
	// Previous is previous_response_id. Conversation says that the provider holds the history in
	// a conversation; ConversationID is empty if the body does not name it.
	Previous       string
	Conversation   bool
	ConversationID string
	// Stored: the provider keeps the response, so that a later request can name it.
	Stored, Stream bool

	body string
	top  *rawjson.Document // its members
}

// ParseResponses reads a body. A *Refusal is the provider's answer to an invalid request; any
// other error says that the body is no request.
func ParseResponses(body string) (*Responses, error) {
	top, err := readObject(body)
	if err != nil {
		return nil, fmt.Errorf("native: the body of a response: %w", err)
	}
	conversation := top.Get("conversation")
	r := &Responses{
		body: body, top: top, Previous: top.Get("previous_response_id").Str,
		Conversation: conversation.Type != gjson.Null, ConversationID: conversation.Str + conversation.Get("id").Str,
		Stored: top.Get("store").Type != gjson.False, Stream: top.Get("stream").Bool(),
	}
	if err := r.readItems(top.Get("input")); err != nil {
		return nil, err
	}
	return r, r.readManagement(top.Get("context_management"))
}

func (r *Responses) readItems(input gjson.Result) error {
	if input.Type == gjson.String {
		r.Items = []string{`{"type":"message","role":"user","content":` + input.Raw + `}`}
		return nil
	}
	for item := range rawjson.Items(input) {
		if r.Trigger != "" {
			return refuseParam("input["+strconv.Itoa(len(r.Items))+"]", "", "compaction_trigger must be the final input item")
		}
		if item.Get("type").Str == "compaction_trigger" {
			r.Trigger = item.Raw
		} else {
			r.Items = append(r.Items, item.Raw)
		}
	}
	return nil
}

// leastThreshold is the smallest compact_threshold of the published schema, in tokens.
const leastThreshold = 1000

func (r *Responses) readManagement(list gjson.Result) error {
	if list.Type == gjson.Null {
		return nil
	}
	if !list.IsArray() {
		return refuseParam("context_management", "", "want an array")
	}
	for n, entry := range list.Array() {
		at := "context_management[" + strconv.Itoa(n) + "]"
		if kind := entry.Get("type"); kind.Str != "compaction" {
			return refuseParam(at+".type", "", "invalid value: '"+kind.Str+"'; supported is 'compaction'")
		}
		r.Managed = true
		v := entry.Get("compact_threshold")
		if v.Type == gjson.Null {
			continue
		}
		if v.Type != gjson.Number || v.Num != float64(v.Int()) || v.Num < leastThreshold {
			return refuseParam(at+".compact_threshold", "integer_below_min_value", "expected a whole number of at least "+strconv.Itoa(leastThreshold))
		}
		r.Threshold = int(v.Int())
	}
	return nil
}

// CompactionContent is the encrypted content of a compaction item; ok is false for other items.
func CompactionContent(item string) (content string, ok bool) {
	switch gjson.Get(item, "type").Str {
	case "compaction", "compaction_summary":
		return gjson.Get(item, "encrypted_content").Str, true
	}
	return "", false
}

// recapStart begins a recap.
const recapStart = `{"type":"message","role":"user","content":[{"type":"input_text","text":"[What happened before, in short; the messages themselves are not here any more.]\n`

// RecapItem is a user message with the summary of a compaction.
func RecapItem(summary string) string {
	return recapStart + rawjson.Quote(summary)[1:] + `}]}`
}

// WithRecaps returns the items with the summaries of our compactions in their place.
func (r *Responses) WithRecaps() []string {
	list := slices.Clone(r.Items)
	for i, item := range list {
		if content, ok := CompactionContent(item); ok && IsToken(content) {
			token, _ := Open(nil, wire.Responses, content)
			list[i] = RecapItem(token.Summary)
		}
	}
	return list
}

// WithTrigger returns items with the request's trigger behind them, if it has one.
func (r *Responses) WithTrigger(items []string) []string {
	if r.Trigger == "" {
		return items
	}
	return append(slices.Clip(items), r.Trigger)
}

// Body is the request with another input and without some members. Everything else keeps its
// bytes.
func (r *Responses) Body(items []string, without ...string) string {
	members := []string{"input", rawjson.Array(items)}
	for _, name := range without {
		members = append(members, name, "")
	}
	return withMembers(r.body, members...)
}

// CountInstructions counts the system and developer messages at the beginning of the items.
func CountInstructions(items []string) int {
	for n, item := range items {
		if role := gjson.Get(item, "role").Str; role != "system" && role != "developer" {
			return n
		}
	}
	return len(items)
}

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
