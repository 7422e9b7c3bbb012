package anthropic

import (
	"io"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
)

// stream builds a message up from its events
// (https://docs.anthropic.com/en/docs/build-with-claude/streaming).
type stream struct {
	answer
	open      []*block // in the order they came
	index     map[int]*block
	calls     int
	emit      func(llm.Delta) // nil when nobody wants the pieces
	delivered bool
	started   bool
	done      bool
}

// block is a content block while it grows. What an event of an unknown type
// adds is not known, and left out.
type block struct {
	start                           string // as content_block_start had it
	kind, name                      string
	call                            int
	text, thinking, signature, args strings.Builder
	citations                       []string
	compaction                      string // the compaction_delta, which replaces the block's members
}

func readStream(r *exchange.Response, emit func(llm.Delta)) (a *answer, delivered bool, err error) {
	s := &stream{emit: emit, index: map[int]*block{}}
	err = exchange.Events(provider, r, func(_, data string) (bool, error) {
		return s.done, s.event(r, gjson.Parse(data))
	})
	if err == nil && s.stop == "" {
		err = io.ErrUnexpectedEOF
		if !s.started {
			err = exchange.Garbage(r, "the stream holds no message", "")
		}
	}
	if err != nil {
		return nil, s.delivered, err
	}
	s.finish()
	return &s.answer, s.delivered, nil
}

func (s *stream) event(r *exchange.Response, v gjson.Result) error {
	switch v.Get("type").Str {
	case "message_start":
		s.started = true
		m := v.Get("message")
		s.id, s.model = m.Get("id").Str, m.Get("model").Str
		s.usage.add(m.Get("usage"))
	case "content_block_start":
		return s.startBlock(r, v.Get("index"), v.Get("content_block"))
	case "content_block_delta":
		b := s.index[int(v.Get("index").Int())]
		if b == nil {
			return exchange.Garbage(r, "a piece of the stream belongs to no block", v.Raw)
		}
		s.delta(b, v.Get("delta"))
	case "message_delta":
		if reason := v.Get("delta.stop_reason").Str; reason != "" {
			s.stop = reason
		}
		s.usage.add(v.Get("usage"))
	case "message_stop":
		s.done = true
	}
	return nil
}

func (s *stream) startBlock(r *exchange.Response, index, start gjson.Result) error {
	i := int(index.Int())
	if s.index[i] != nil || !start.IsObject() {
		return exchange.Garbage(r, "the stream begins a block that is none, or begins it twice", start.Raw)
	}
	b := &block{start: start.Raw, kind: start.Get("type").Str, name: start.Get("name").Str, call: s.calls}
	s.open = append(s.open, b)
	s.index[i] = b
	if b.kind == "tool_use" {
		s.calls++
	}
	// A block may begin with more than nothing.
	s.send(llm.Delta{Text: start.Get("text").Str, Reasoning: start.Get("thinking").Str})
	return nil
}

func (s *stream) delta(b *block, d gjson.Result) {
	switch d.Get("type").Str {
	case "text_delta":
		text := d.Get("text").Str
		b.text.WriteString(text)
		s.send(llm.Delta{Text: text})
	case "thinking_delta":
		text := d.Get("thinking").Str
		b.thinking.WriteString(text)
		s.send(llm.Delta{Reasoning: text})
	case "signature_delta":
		b.signature.WriteString(d.Get("signature").Str)
	case "input_json_delta":
		text := d.Get("partial_json").Str
		b.args.WriteString(text)
		if b.kind == "tool_use" && text != "" {
			s.send(llm.Delta{Arguments: text, Call: b.call, Tool: b.name})
		}
	case "citations_delta":
		if c := d.Get("citation"); c.Exists() {
			b.citations = append(b.citations, c.Raw)
		}
	case "compaction_delta":
		b.compaction = d.Raw
	}
}

func (s *stream) send(d llm.Delta) {
	if s.emit != nil && d != (llm.Delta{}) {
		s.delivered = true
		s.emit(d)
	}
}

// finish writes the blocks as an answer in one piece would hold them.
func (s *stream) finish() {
	for i, b := range s.open {
		raw, ok := b.raw()
		if !ok {
			if s.broken == nil {
				s.broken = map[int]string{}
			}
			s.broken[i] = b.args.String()
		}
		s.blocks = append(s.blocks, raw)
	}
}

// raw returns the JSON of the block, and false when its arguments are no JSON;
// then the block has none.
func (b *block) raw() (raw string, ok bool) {
	raw = b.start
	set := func(name, value string) {
		if out, err := sjson.SetRaw(raw, name, value); err == nil {
			raw = out
		}
	}
	grow := func(name string, more *strings.Builder) {
		if more.Len() > 0 {
			set(name, exchange.Quote(gjson.Get(b.start, name).Str+more.String()))
		}
	}
	grow("text", &b.text)
	grow("thinking", &b.thinking)
	grow("signature", &b.signature)
	if len(b.citations) > 0 {
		set("citations", "["+strings.Join(b.citations, ",")+"]")
	}
	gjson.Parse(b.compaction).ForEach(func(key, v gjson.Result) bool {
		if key.Str != "type" {
			set(key.Str, v.Raw)
		}
		return true
	})
	if args := strings.TrimSpace(b.args.String()); args != "" {
		if !rawjson.Valid(args) || !strings.HasPrefix(args, "{") {
			set("input", "{}")
			return raw, false
		}
		set("input", args)
	}
	return raw, true
}
