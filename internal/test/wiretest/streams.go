package wiretest

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// StreamOptions say how a provider streams.
type StreamOptions struct {
	// NoUsage: Chat tells of the usage only where it was asked to.
	NoUsage bool
	// Once: the end of a response does not repeat its items, as with some servers.
	Once bool
	// Unknown adds a comment, and what the API may grow: an event, and a piece of
	// blocks of other types.
	Unknown bool
}

// Events makes a stream of an answer in one piece: its events, each as the provider
// of the API sends it. Texts and arguments come in a few pieces.
func Events(api, whole string, o *StreamOptions) []string {
	if o == nil {
		o = &StreamOptions{}
	}
	s := &streamed{StreamOptions: *o, answer: gjson.Parse(whole)}
	switch api {
	case wire.Anthropic:
		s.messageEvents()
	case wire.Chat:
		s.chunks()
	case wire.Responses:
		s.responseEvents()
	default:
		s.contents()
	}
	return s.events
}

// streamed is a stream that is being written.
type streamed struct {
	StreamOptions
	answer gjson.Result
	events []string
}

// named adds an event that has its name in its data too.
func (s *streamed) named(kind string, members ...string) {
	data := `{"type":"` + kind + `"`
	if strings.HasPrefix(kind, "response.") {
		data += `,"sequence_number":` + strconv.Itoa(len(s.events))
	}
	for _, m := range members {
		data += "," + m
	}
	s.events = append(s.events, "event: "+kind+"\ndata: "+data+"}\n\n")
}

func (s *streamed) unknown(event func()) {
	if s.Unknown {
		s.events[len(s.events)-1] += ": a comment\n\n"
		event()
	}
}

// messageGrows are the members of blocks that grow; a signature comes at once.
var messageGrows = []string{"text", "thinking", "signature"}

func (s *streamed) messageEvents() {
	start := set(set(s.answer.Raw, "content", "[]"), "stop_reason", "null")
	usage := ""
	if n := s.answer.Get("usage.output_tokens"); n.Exists() {
		start, usage = set(start, "usage.output_tokens", "1"), `,"usage":{"output_tokens":`+n.Raw+`}`
	}
	s.named("message_start", `"message":`+start)
	s.named("ping")
	s.unknown(func() { s.named("novelty", `"n":1`) })
	for i, b := range s.answer.Get("content").Array() {
		at, block := `"index":`+strconv.Itoa(i), b.Raw
		var deltas []string
		for _, g := range messageGrows {
			text := b.Get(g)
			if kind := b.Get("type").Str; text.Type != gjson.String || kind != "text" && kind != "thinking" {
				continue
			}
			block = set(block, g, `""`)
			list := pieces(text.Str)
			if g == "signature" {
				list = []string{text.Raw}
			}
			for _, p := range list {
				deltas = append(deltas, `{"type":"`+g+`_delta","`+g+`":`+p+`}`)
			}
		}
		if input := b.Get("input"); input.IsObject() {
			block = set(block, "input", "{}")
			for _, p := range append([]string{`""`}, pieces(input.Raw)...) {
				deltas = append(deltas, `{"type":"input_json_delta","partial_json":`+p+`}`)
			}
		}
		if s.Unknown && deltas == nil {
			deltas = []string{`{"type":"aside_delta","n":2}`}
		}
		s.named("content_block_start", at, `"content_block":`+block)
		for _, d := range deltas {
			s.named("content_block_delta", at, `"delta":`+d)
		}
		s.named("content_block_stop", at)
	}
	s.named("message_delta", `"delta":{"stop_reason":`+s.answer.Get("stop_reason").Raw+`,"stop_sequence":null}`+usage)
	s.named("message_stop")
}

func (s *streamed) chunks() {
	head := set(s.answer.Raw, "object", `"chat.completion.chunk"`)
	usage := s.answer.Get("usage")
	head, _ = sjson.Delete(head, "usage")
	chunk := func(choices, rest string) {
		s.events = append(s.events, "data: "+strings.TrimSuffix(set(head, "choices", "["+choices+"]"), "}")+rest+"}\n\n")
	}
	delta := func(d string) { chunk(`{"index":0,"delta":{`+d+`},"finish_reason":null}`, "") }
	delta(`"role":"assistant","content":""`)
	s.unknown(func() { delta(`"aside":{"n":1}`) })
	message := s.answer.Get("choices.0.message")
	for _, name := range []string{"reasoning_content", "reasoning", "content", "refusal"} {
		for _, p := range pieces(message.Get(name).Str) {
			delta(`"` + name + `":` + p)
		}
	}
	for i, c := range message.Get("tool_calls").Array() {
		kind, field := "function", "arguments"
		if c.Get("type").Str == "custom" {
			kind, field = "custom", "input"
		}
		at := `"tool_calls":[{"index":` + strconv.Itoa(i) + `,`
		delta(at + strings.TrimPrefix(strings.TrimSpace(set(c.Raw, kind+"."+field, `""`)), "{") + `]`)
		for _, p := range pieces(c.Get(kind).Get(field).Str) {
			delta(at + `"` + kind + `":{"` + field + `":` + p + `}}]`)
		}
	}
	chunk(`{"index":0,"delta":{},"finish_reason":`+s.answer.Get("choices.0.finish_reason").Raw+`}`, "")
	if usage.Exists() && !s.NoUsage {
		chunk("", `,"usage":`+usage.Raw)
	}
	s.events = append(s.events, "data: [DONE]\n\n")
}

func (s *streamed) responseEvents() {
	begun := set(set(set(s.answer.Raw, "status", `"in_progress"`), "output", "[]"), "usage", "null")
	begun, _ = sjson.Delete(begun, "incomplete_details")
	s.named("response.created", `"response":`+begun)
	s.named("response.in_progress", `"response":`+begun)
	s.unknown(func() { s.named("response.novelty", `"n":1`) })
	for i, item := range s.answer.Get("output").Array() {
		at, start := `"output_index":`+strconv.Itoa(i), item.Raw
		if item.Get("id").Exists() {
			at = `"item_id":` + item.Get("id").Raw + `,` + at
		}
		for member, empty := range map[string]string{"status": `"in_progress"`, "content": "[]", "summary": "[]", "arguments": `""`, "input": `""`, "encrypted_content": `""`} {
			if item.Get(member).Exists() {
				start = set(start, member, empty)
			}
		}
		grows := func(kind, more, field, text string) {
			for _, p := range pieces(text) {
				s.named("response."+kind+".delta", at+more, `"delta":`+p)
			}
			s.named("response."+kind+".done", at+more, `"`+field+`":`+rawjson.Quote(text))
		}
		s.named("response.output_item.added", at, `"item":`+start)
		if text := item.Get("content"); text.Type == gjson.String {
			grows("output_text", `,"content_index":0`, "text", text.Str)
		}
		for k, part := range item.Get("content").Array() {
			kind, field := part.Get("type").Str, "text"
			if kind == "refusal" {
				field = kind
			}
			if text := part.Get(field); text.Type == gjson.String && item.Get("type").Str != "reasoning" && item.Get("content").IsArray() {
				more := `,"content_index":` + strconv.Itoa(k)
				s.named("response.content_part.added", at+more, `"part":`+set(part.Raw, field, `""`))
				grows(kind, more, field, text.Str)
				s.named("response.content_part.done", at+more, `"part":`+part.Raw)
			}
		}
		for k, part := range item.Get("summary").Array() {
			grows("reasoning_summary_text", `,"summary_index":`+strconv.Itoa(k), "text", part.Get("text").Str)
		}
		switch item.Get("type").Str {
		case "function_call":
			grows("function_call_arguments", "", "arguments", item.Get("arguments").Str)
		case "custom_tool_call":
			grows("custom_tool_call_input", "", "input", item.Get("input").Str)
		}
		s.named("response.output_item.done", at, `"item":`+item.Raw)
	}
	end := s.answer.Raw
	if s.Once {
		end = set(end, "output", "[]")
	}
	s.named("response."+s.answer.Get("status").Str, `"response":`+end)
}

// contents are responses that hold a part each; the last has what ends the answer.
func (s *streamed) contents() {
	var parts []string
	for _, part := range s.answer.Get("candidates.0.content.parts").Array() {
		text := part.Get("text")
		if text.Str == "" || part.Get("thoughtSignature").Exists() {
			parts = append(parts, part.Raw)
			continue
		}
		for _, p := range pieces(text.Str) {
			parts = append(parts, set(part.Raw, "text", p))
		}
	}
	for i := 0; i == 0 || i < len(parts); i++ {
		chunk := set(s.answer.Raw, "candidates.0.content.parts", "["+strings.Join(parts[min(i, len(parts)):min(i+1, len(parts))], "")+"]")
		if i < len(parts)-1 {
			chunk, _ = sjson.Delete(chunk, "candidates.0.finishReason")
		}
		s.events = append(s.events, "data: "+chunk+"\r\n\r\n")
	}
}

// pieces cuts a text into a few pieces between its characters, each as JSON.
func pieces(text string) (list []string) {
	r := []rune(text)
	for n := max(1, (len(r)+4)/5); len(r) > 0; {
		n = min(n, len(r))
		list = append(list, rawjson.Quote(string(r[:n])))
		r = r[n:]
	}
	return list
}

func set(doc, path, value string) string {
	out, err := sjson.SetRaw(doc, path, value)
	if err != nil {
		panic(err) // the paths are this package's own
	}
	return out
}
