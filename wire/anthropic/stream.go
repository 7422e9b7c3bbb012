package anthropic

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// NewStream returns the reader of a streamed message; see wire.Answers
// (https://docs.anthropic.com/en/docs/build-with-claude/streaming).
func (Codec) NewStream() wire.Stream { return &stream{index: map[int64]*partialBlock{}} }

// stream collects a message from its events.
type stream struct {
	answer  wire.Answer // without its message and usage
	counts  counts
	blocks  []*partialBlock // in the order they came
	index   map[int64]*partialBlock
	started bool
}

// partialBlock is a content block that is still growing. Deltas of unknown types are
// left out.
type partialBlock struct {
	start                           string // the block in content_block_start
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
		s.started, s.answer.ID, s.answer.Model = true, m.Get("id").Str, m.Get("model").Str
		s.counts.add(m)
	case "content_block_start":
		err = s.begin(v.Get("index").Int(), v.Get("content_block"))
	case "content_block_delta":
		b := s.index[v.Get("index").Int()]
		if b == nil {
			return now, codec.NoAnswer("the stream adds to a block that it did not begin")
		}
		b.grow(v.Get("delta"))
	case "message_delta":
		s.answer.Reason = cmp.Or(v.Get("delta.stop_reason").Str, s.answer.Reason)
		s.answer.Stop = codec.StopOf(s.answer.Reason)
		s.counts.add(v)
	case "message_stop":
		now.Done = true
	}
	now.Stop, now.Usage = s.answer.Stop, s.counts.usage()
	return now, err
}

func (s *stream) begin(index int64, start gjson.Result) error {
	if s.index[index] != nil || !start.IsObject() {
		return codec.NoAnswer("the stream begins a block twice, or begins something that is no block")
	}
	b := &partialBlock{start: start.Raw}
	s.blocks = append(s.blocks, b)
	s.counts.addBlock(start)
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
	a := s.answer
	if !s.started && len(s.blocks) == 0 && a.Reason == "" {
		return a, codec.NoAnswer("the stream holds no message")
	}
	a.Usage = s.counts.usage()
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
			// The arguments are kept as far as they came; the block cannot be sent back.
			call.Arguments, call.Source = args, thread.Source{}
			a.Message.Parts[i], a.Message.Frame = call, nil
		}
	}
	return a, nil
}

// block returns the JSON of the block. It is not whole when its arguments are no object;
// then they are left empty.
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
