package native

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Addition is what native compaction adds to the upstream's answer, in the Messages API. The zero
// value adds nothing. It is used by one goroutine.
type Addition struct {
	// Block is the compaction block that the answer begins with; empty for none.
	Block string
	// Managed says that the request had context_management. Applied is what its edits did.
	Managed bool
	Applied []Applied
	// Iterations says that the usage lists iterations, as it does wherever the request may
	// compact. That of the block is all zeros: no model was asked with the client's key.
	Iterations bool

	usage string // of the stream so far
}

// ThresholdBlock is the block of a compaction that a threshold triggered, with its token.
func ThresholdBlock(text, token string) string {
	return `{"type":"compaction","content":` + rawjson.Quote(text) + `,"encrypted_content":` + rawjson.Quote(token) + `}`
}

// SignedBlock is the block of a summary on demand, with its token.
func SignedBlock(text, token string) string {
	return `{"type":"compaction","content":` + rawjson.Quote(text) + `,"signature":` + rawjson.Quote(token) + `}`
}

// Answer is an answer that holds only the block.
func (a *Addition) Answer(id, model string) string {
	out := `{"id":` + rawjson.Quote(id) + `,"type":"message","role":"assistant","model":` + rawjson.Quote(model) + `,"content":[` + a.Block +
		`],"stop_reason":"compaction","stop_sequence":null`
	if a.Managed {
		out += `,"context_management":` + a.management()
	}
	return out + `,"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"iterations":[` + compactionIteration + `]}}`
}

// AnswerEvents is Answer as a stream.
func (a *Addition) AnswerEvents(id, model string) string {
	var out strings.Builder
	write := func(data string) {
		out.WriteString("event: " + gjson.Get(data, "type").Str + "\ndata: " + data + "\n\n")
	}
	whole := a.Answer(id, model)
	start := jsonedit.Set(jsonedit.Set(whole, "content", "[]"), "stop_reason", "null")
	start = jsonedit.Set(start, "usage.iterations", "[]")
	if a.Managed {
		start = jsonedit.Set(start, "context_management", "null")
	}
	write(`{"type":"message_start","message":` + start + `}`)
	for _, data := range a.blockEvents() {
		write(data)
	}
	end := `{"type":"message_delta","delta":{"stop_reason":"compaction","stop_sequence":null}`
	if a.Managed {
		end += `,"context_management":` + a.management()
	}
	write(end + `,"usage":` + gjson.Get(whole, "usage").Raw + `}`)
	write(`{"type":"message_stop"}`)
	return out.String()
}

// blockEvents are the events of the block: one delta after a threshold, and the whole block on
// demand.
func (a *Addition) blockEvents() []string {
	start := `{"type":"content_block_start","index":0,"content_block":`
	block := gjson.Parse(a.Block)
	if block.Get("signature").Exists() {
		return []string{start + a.Block + `}`, `{"type":"content_block_stop","index":0}`}
	}
	return []string{
		start + `{"type":"compaction","content":null,"encrypted_content":null}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":` + block.Get("content").Raw +
			`,"encrypted_content":` + block.Get("encrypted_content").Raw + `}}`,
		`{"type":"content_block_stop","index":0}`,
	}
}

// management is the context_management of an answer.
func (a *Addition) management() string {
	list := make([]string, len(a.Applied))
	for i, done := range a.Applied {
		what := "cleared_tool_uses"
		if done.Type == ClearThinking {
			what = "cleared_thinking_turns"
		}
		list[i] = `{"type":"` + done.Type + `","` + what + `":` + strconv.Itoa(done.Cleared) + `,"cleared_input_tokens":` + strconv.Itoa(done.Tokens) + `}`
	}
	return `{"applied_edits":[` + strings.Join(list, ",") + `]}`
}

// compactionIteration is the iteration that made the block.
const compactionIteration = `{"type":"compaction","input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0}}`

// MergeUsage sets the members of one usage in another: the last counts of a stream are the whole. An
// empty text is a usage without members.
func MergeUsage(usage, last string) string {
	counts := gjson.Parse(last)
	if !counts.IsObject() {
		return usage
	}
	usage = cmp.Or(usage, "{}")
	for name, v := range rawjson.Members(counts) {
		if v.Type != gjson.Null {
			usage = jsonedit.Set(usage, gjson.Escape(name), v.Raw)
		}
	}
	return usage
}

// MessageIteration is the usage of a message as an iteration of a longer one.
func MessageIteration(usage string) string {
	message := `{"type":"message"}`
	for _, name := range []string{"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"} {
		if v := gjson.Get(usage, name); v.Exists() && v.Type != gjson.Null {
			message = jsonedit.Set(message, name, v.Raw)
		}
	}
	return message
}

// iterations are those of an answer with a usage of the upstream's.
func (a *Addition) iterations(usage string) string {
	message := MessageIteration(usage)
	if a.Block == "" {
		return "[" + message + "]"
	}
	return "[" + compactionIteration + "," + message + "]"
}

// AddToAnswer adds to an answer in one piece. Anything but a message stays as it is.
func (a *Addition) AddToAnswer(answer string) string {
	v := gjson.Parse(answer)
	if !v.Get("content").IsArray() || !v.Get("usage").IsObject() {
		return answer
	}
	if a.Block != "" {
		blocks := append([]gjson.Result{gjson.Parse(a.Block)}, v.Get("content").Array()...)
		answer = jsonedit.Set(answer, "content", rawjson.ArrayOf(blocks, raw))
	}
	if a.Managed {
		answer = jsonedit.Set(answer, "context_management", a.management())
	}
	if a.Iterations {
		answer = jsonedit.Set(answer, "usage.iterations", a.iterations(gjson.Get(answer, "usage").Raw))
	}
	return answer
}

// AddToEvent adds to an event of a stream. It returns the events to send in its place; that is the
// same text if nothing is to be added.
func (a *Addition) AddToEvent(data string) []string {
	v := gjson.Parse(data)
	switch v.Get("type").Str {
	case "message_start":
		a.usage = "{}"
		if u := v.Get("message.usage"); u.IsObject() {
			a.usage = u.Raw
		}
		if a.Block != "" {
			return append([]string{data}, a.blockEvents()...)
		}
	case "content_block_start", "content_block_delta", "content_block_stop":
		if a.Block != "" {
			return []string{jsonedit.Set(data, "index", strconv.FormatInt(v.Get("index").Int()+1, 10))}
		}
	case "message_delta":
		if a.Managed {
			data = jsonedit.Set(data, "context_management", a.management())
		}
		if a.Iterations && v.Get("usage").IsObject() {
			data = jsonedit.Set(data, "usage.iterations", a.iterations(MergeUsage(a.usage, v.Get("usage").Raw)))
		}
	}
	return []string{data}
}

// AddToCount adds to the answer of count_tokens the size of the request before its edits.
func (a *Addition) AddToCount(answer string) string {
	n := gjson.Get(answer, "input_tokens")
	if !a.Managed || n.Type != gjson.Number {
		return answer
	}
	original := n.Int()
	for _, done := range a.Applied {
		original += int64(done.Tokens)
	}
	return jsonedit.Set(answer, "context_management", `{"original_input_tokens":`+strconv.FormatInt(original, 10)+`}`)
}
