package anthropic

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

var _ wire.Answers = Codec{}

// DecodeAnswer reads a message in one piece; see wire.Answers.
func (Codec) DecodeAnswer(body []byte) (wire.Answer, error) {
	doc := string(body)
	if err := rawjson.Check(doc); err != nil {
		return wire.Answer{}, fmt.Errorf("%w: %v", wire.ErrAnswer, err)
	}
	v := gjson.Parse(doc)
	content := v.Get("content")
	if !content.IsArray() {
		return wire.Answer{}, fmt.Errorf("%w: it has no content", wire.ErrAnswer)
	}
	var u counts
	u.add(v)
	reason := v.Get("stop_reason").Str
	a := wire.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Stop: stopOf(reason), Reason: reason, Usage: u.usage()}
	var err error
	a.Message, err = decodeContent(content.Raw)
	return a, err
}

// decodeContent reads the content of an answer as the message that later requests
// hold.
func decodeContent(content string) (thread.Message, error) {
	list, err := DecodeMessage(`{"role":"assistant","content":` + content + `}`)
	if err != nil {
		return thread.Message{}, fmt.Errorf("%w: %v", wire.ErrAnswer, err)
	}
	return list[0], nil
}

func stopOf(reason string) wire.Stop {
	switch reason {
	case "end_turn", "stop_sequence":
		return wire.StopEnd
	case "max_tokens":
		return wire.StopLength
	case "tool_use":
		return wire.StopTool
	case "refusal":
		return wire.StopRefusal
	case "model_context_window_exceeded":
		return wire.StopContext
	}
	return wire.StopOther
}

// counts takes what several events say of the usage. The counts of a message only
// grow, and some gateways send zeros in one of the events, so the largest counts.
type counts struct {
	input, output, read, write, thinking int
	mixed                                bool
}

// add takes in a message, or an event that has its usage.
func (c *counts) add(of gjson.Result) {
	used := of.Get("usage")
	before := c.prompt()
	for _, n := range []struct {
		to   *int
		from string
	}{
		{&c.input, "input_tokens"}, {&c.output, "output_tokens"}, {&c.read, "cache_read_input_tokens"},
		{&c.write, "cache_creation_input_tokens"}, {&c.thinking, "output_tokens_details.thinking_tokens"},
	} {
		if v := used.Get(n.from); v.Type == gjson.Number && v.Num > 0 && v.Num < 1<<53 {
			*n.to = max(*n.to, int(v.Num))
		}
	}
	c.mixed = c.mixed || before > 0 && c.prompt() > before || // what the provider's own tools brought
		used.Get("iterations.#").Int() > 1 || of.Get("context_management.applied_edits.#").Int() > 0
	for _, n := range rawjson.Members(used.Get("server_tool_use")) {
		c.mixed = c.mixed || n.Num > 0
	}
}

// prompt is the whole prompt: input_tokens leaves the cache out.
func (c *counts) prompt() int { return c.input + c.read + c.write }

func (c *counts) usage() wire.Usage {
	u := wire.Usage{Input: c.prompt(), CacheRead: c.read, CacheWrite: c.write, Output: c.output, Reasoning: c.thinking}
	u.Known = u != wire.Usage{}
	u.Mixed = c.mixed && u.Known
	return u
}

// NewStream returns the reader of a streamed message; see wire.Answers
// (https://docs.anthropic.com/en/docs/build-with-claude/streaming).
func (Codec) NewStream() wire.Stream { return &stream{index: map[int64]*partialBlock{}} }

// stream adds a message up from its events.
type stream struct {
	id, model, reason string
	counts            counts
	blocks            []*partialBlock // in the order they came
	index             map[int64]*partialBlock
	started           bool
}

// partialBlock is a content block that is being written. What an event of an unknown
// type adds is not known, and left out.
type partialBlock struct {
	start                           string // as content_block_start had it
	text, thinking, signature, args strings.Builder
	citations                       []string
	compaction                      gjson.Result // the compaction_delta, which replaces the block's members
}

// Event takes an event; see wire.Stream.
func (s *stream) Event(data string) (now wire.Progress, err error) {
	v := gjson.Parse(data)
	switch v.Get("type").Str {
	case "message_start":
		m := v.Get("message")
		s.started, s.id, s.model = true, m.Get("id").Str, m.Get("model").Str
		s.counts.add(m)
	case "content_block_start":
		err = s.begin(v.Get("index").Int(), v.Get("content_block"))
	case "content_block_delta":
		b := s.index[v.Get("index").Int()]
		if b == nil {
			return now, fmt.Errorf("%w: a piece of the stream belongs to no block", wire.ErrAnswer)
		}
		b.grow(v.Get("delta"))
	case "message_delta":
		s.reason = cmp.Or(v.Get("delta.stop_reason").Str, s.reason)
		s.counts.add(v)
	case "message_stop":
		now.Done = true
	}
	now.Stop, now.Usage = s.stop(), s.counts.usage()
	return now, err
}

func (s *stream) stop() wire.Stop {
	if s.reason == "" {
		return ""
	}
	return stopOf(s.reason)
}

func (s *stream) begin(index int64, start gjson.Result) error {
	if s.index[index] != nil || !start.IsObject() {
		return fmt.Errorf("%w: the stream begins a block that is none, or begins it twice", wire.ErrAnswer)
	}
	b := &partialBlock{start: start.Raw}
	s.blocks = append(s.blocks, b)
	s.index[index] = b
	return nil
}

func (b *partialBlock) grow(d gjson.Result) {
	switch d.Get("type").Str {
	case "text_delta":
		b.text.WriteString(d.Get("text").Str)
	case "thinking_delta":
		b.thinking.WriteString(d.Get("thinking").Str)
	case "signature_delta":
		b.signature.WriteString(d.Get("signature").Str)
	case "input_json_delta":
		b.args.WriteString(d.Get("partial_json").Str)
	case "citations_delta":
		if c := d.Get("citation"); c.Exists() {
			b.citations = append(b.citations, c.Raw)
		}
	case "compaction_delta":
		b.compaction = d
	}
}

// Answer reads the blocks as an answer in one piece would hold them; see
// wire.Stream.
func (s *stream) Answer() (wire.Answer, error) {
	if !s.started && len(s.blocks) == 0 && s.reason == "" {
		return wire.Answer{}, fmt.Errorf("%w: the stream holds no message", wire.ErrAnswer)
	}
	a := wire.Answer{ID: s.id, Model: s.model, Stop: s.stop(), Reason: s.reason, Usage: s.counts.usage()}
	blocks := make([]string, len(s.blocks))
	broken := map[int]string{}
	for i, b := range s.blocks {
		whole := false
		if blocks[i], whole = b.block(); !whole {
			broken[i] = b.args.String()
		}
	}
	var err error
	if a.Message, err = decodeContent(rawjson.Array(blocks)); err != nil {
		return a, err
	}
	for i, args := range broken {
		if call, ok := a.Message.Parts[i].(thread.ToolCall); ok {
			// The arguments are kept as far as they came, and the block is not one
			// that could be sent back.
			call.Arguments, call.Source = args, thread.Source{}
			a.Message.Parts[i], a.Message.Frame = call, nil
		}
	}
	return a, nil
}

// block returns the JSON of the block, and false when its arguments are no object;
// then the block has none.
func (b *partialBlock) block() (raw string, whole bool) {
	raw = b.start
	set := func(name, value string) { raw = jsonedit.Set(raw, name, value) }
	more := func(name string, text *strings.Builder) {
		if text.Len() > 0 {
			set(name, rawjson.Quote(gjson.Get(b.start, name).Str+text.String()))
		}
	}
	more("text", &b.text)
	more("thinking", &b.thinking)
	more("signature", &b.signature)
	if len(b.citations) > 0 {
		set("citations", rawjson.Array(b.citations))
	}
	for name, v := range rawjson.Members(b.compaction) {
		if name != "type" {
			set(gjson.Escape(name), v.Raw)
		}
	}
	args := strings.TrimSpace(b.args.String())
	switch {
	case args == "":
	case rawjson.IsObject(args):
		set("input", args)
	default:
		set("input", "{}")
		return raw, false
	}
	return raw, true
}
