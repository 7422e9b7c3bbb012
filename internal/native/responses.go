package native

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

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

	top object
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
		top: top, Previous: top.Get("previous_response_id").Str,
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
	return r.top.without(without...).with("input", rawjson.Array(items)).String()
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
