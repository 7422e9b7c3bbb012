package emulate

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// addition is what native compaction adds to the upstream's answer, in the Messages API. The zero
// value adds nothing. It is used by one goroutine.
type addition struct {
	// block is the compaction block that the answer begins with; empty for none.
	block string
	// managed says that the request had context_management. applied is what its edits did.
	managed bool
	applied []native.Applied
	// iterate says that the usage lists iterations, as it does wherever the request may
	// compact. That of the block is all zeros: no model was asked with the client's key.
	iterate bool

	usage string // of the stream so far
}

// answer is an answer that holds only the block.
func (a *addition) answer(id, model string) string {
	out := `{"id":` + rawjson.Quote(id) + `,"type":"message","role":"assistant","model":` + rawjson.Quote(model) + `,"content":[` + a.block +
		`],"stop_reason":"compaction","stop_sequence":null`
	if a.managed {
		out += `,"context_management":` + a.management()
	}
	return out + `,"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"iterations":[` + compactionIteration + `]}}`
}

// answerEvents is answer as a stream.
func (a *addition) answerEvents(id, model string) string {
	var out strings.Builder
	write := func(data string) {
		out.WriteString("event: " + gjson.Get(data, "type").Str + "\ndata: " + data + "\n\n")
	}
	whole := a.answer(id, model)
	start := jsonedit.Set(jsonedit.Set(whole, "content", "[]"), "stop_reason", "null")
	start = jsonedit.Set(start, "usage.iterations", "[]")
	if a.managed {
		start = jsonedit.Set(start, "context_management", "null")
	}
	write(`{"type":"message_start","message":` + start + `}`)
	for _, data := range a.blockEvents() {
		write(data)
	}
	end := `{"type":"message_delta","delta":{"stop_reason":"compaction","stop_sequence":null}`
	if a.managed {
		end += `,"context_management":` + a.management()
	}
	write(end + `,"usage":` + gjson.Get(whole, "usage").Raw + `}`)
	write(`{"type":"message_stop"}`)
	return out.String()
}

// blockEvents are the events of the block: one delta after a threshold, and the whole block on
// demand.
func (a *addition) blockEvents() []string {
	start := `{"type":"content_block_start","index":0,"content_block":`
	block := gjson.Parse(a.block)
	if block.Get("signature").Exists() {
		return []string{start + a.block + `}`, `{"type":"content_block_stop","index":0}`}
	}
	return []string{
		start + `{"type":"compaction","content":null,"encrypted_content":null}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":` + block.Get("content").Raw +
			`,"encrypted_content":` + block.Get("encrypted_content").Raw + `}}`,
		`{"type":"content_block_stop","index":0}`,
	}
}

// management is the context_management of an answer.
func (a *addition) management() string {
	list := make([]string, len(a.applied))
	for i, done := range a.applied {
		what := "cleared_tool_uses"
		if done.Type == native.ClearThinking {
			what = "cleared_thinking_turns"
		}
		list[i] = `{"type":"` + done.Type + `","` + what + `":` + strconv.Itoa(done.Cleared) + `,"cleared_input_tokens":` + strconv.Itoa(done.Tokens) + `}`
	}
	return `{"applied_edits":[` + strings.Join(list, ",") + `]}`
}

// compactionIteration is the iteration that made the block.
const compactionIteration = `{"type":"compaction","input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0}}`

// iterations are those of an answer with a usage of the upstream's.
func (a *addition) iterations(usage string) string {
	message := native.MessageIteration(usage)
	if a.block == "" {
		return "[" + message + "]"
	}
	return "[" + compactionIteration + "," + message + "]"
}

// addToAnswer adds to an answer in one piece. Anything but a message stays as it is.
func (a *addition) addToAnswer(answer string) string {
	v := gjson.Parse(answer)
	if !v.Get("content").IsArray() || !v.Get("usage").IsObject() {
		return answer
	}
	if a.block != "" {
		blocks := append([]gjson.Result{gjson.Parse(a.block)}, v.Get("content").Array()...)
		answer = jsonedit.Set(answer, "content", rawjson.ArrayOf(blocks, func(v gjson.Result) string { return v.Raw }))
	}
	if a.managed {
		answer = jsonedit.Set(answer, "context_management", a.management())
	}
	if a.iterate {
		answer = jsonedit.Set(answer, "usage.iterations", a.iterations(gjson.Get(answer, "usage").Raw))
	}
	return answer
}

// addToEvent adds to an event of a stream. It returns the events to send in its place; that is the
// same text if nothing is to be added.
func (a *addition) addToEvent(data string) []string {
	v := gjson.Parse(data)
	switch v.Get("type").Str {
	case "message_start":
		a.usage = "{}"
		if u := v.Get("message.usage"); u.IsObject() {
			a.usage = u.Raw
		}
		if a.block != "" {
			return append([]string{data}, a.blockEvents()...)
		}
	case "content_block_start", "content_block_delta", "content_block_stop":
		if a.block != "" {
			return []string{jsonedit.Set(data, "index", strconv.FormatInt(v.Get("index").Int()+1, 10))}
		}
	case "message_delta":
		if a.managed {
			data = jsonedit.Set(data, "context_management", a.management())
		}
		if a.iterate && v.Get("usage").IsObject() {
			data = jsonedit.Set(data, "usage.iterations", a.iterations(native.MergeUsage(a.usage, v.Get("usage").Raw)))
		}
	}
	return []string{data}
}

// addToCount adds to the answer of count_tokens the size of the request before its edits.
func (a *addition) addToCount(answer string) string {
	n := gjson.Get(answer, "input_tokens")
	if !a.managed || n.Type != gjson.Number {
		return answer
	}
	original := n.Int()
	for _, done := range a.applied {
		original += int64(done.Tokens)
	}
	return jsonedit.Set(answer, "context_management", `{"original_input_tokens":`+strconv.FormatInt(original, 10)+`}`)
}
