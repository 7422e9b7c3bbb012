package openai

import (
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
)

// stream builds a message up from its chunks
// (https://platform.openai.com/docs/api-reference/chat-streaming).
type stream struct {
	provider  string
	answer    answer
	content   strings.Builder
	refusal   strings.Builder
	reasoning strings.Builder
	thought   string   // the field that reasoning came in
	details   []string // the pieces of reasoning_details
	calls     []*call
	byIndex   map[int64]*call // the last call of each index
	emit      func(llm.Delta) // nil when nobody wants the pieces
	delivered bool
	started   bool
	done      bool
}

// call is a tool call while it grows.
type call struct {
	position       int
	id, kind, name string
	args           strings.Builder
	extra          []string // other members, as they came
}

func readStream(provider string, r *exchange.Response, emit func(llm.Delta)) (a *answer, delivered bool, err error) {
	s := &stream{provider: provider, emit: emit, byIndex: map[int64]*call{}}
	err = exchange.Events(provider, r, func(_, data string) (bool, error) {
		if data == "[DONE]" {
			s.done = true
			return true, nil
		}
		return false, s.chunk(r, gjson.Parse(data))
	})
	switch {
	case err != nil:
	case !s.started:
		err = exchange.Garbage(r, "the stream holds no chat completion", "")
	case !s.done && s.answer.stop == "":
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, s.delivered, err
	}
	s.answer.message = s.message()
	s.answer.refusal = s.refusal.Len() > 0
	return &s.answer, s.delivered, nil
}

func (s *stream) chunk(r *exchange.Response, v gjson.Result) error {
	if m := v.Get("model").Str; m != "" {
		s.answer.model = m
	}
	if u := counts(v.Get("usage")); u.Known {
		s.answer.usage = u // the last one counts: servers that send several add up
	}
	choice := v.Get("choices.0")
	if !choice.IsObject() {
		return nil
	}
	s.started = true
	if e := llm.Failure(s.provider, r.Status, []byte(choice.Raw)); e != nil {
		return e
	}
	if u := counts(choice.Get("usage")); u.Known {
		s.answer.usage = u // Kimi
	}
	if reason := choice.Get("finish_reason").Str; reason != "" {
		s.answer.stop = reason
	}
	s.delta(choice.Get("delta"))
	return nil
}

func (s *stream) delta(d gjson.Result) {
	d.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "content":
			s.content.WriteString(v.Str)
			s.send(llm.Delta{Text: v.Str})
		case "refusal":
			s.refusal.WriteString(v.Str)
		case "reasoning_content", "reasoning":
			// Some servers send both, with the same text: the first one counts.
			if v.Str != "" && (s.thought == "" || s.thought == key.Str) {
				s.thought = key.Str
				s.reasoning.WriteString(v.Str)
				s.send(llm.Delta{Reasoning: v.Str})
			}
		case "reasoning_details":
			v.ForEach(func(_, piece gjson.Result) bool {
				s.details = append(s.details, piece.Raw)
				return true
			})
		case "tool_calls":
			v.ForEach(func(_, piece gjson.Result) bool {
				s.callPiece(piece)
				return true
			})
		case "function_call":
			if v.IsObject() {
				s.legacyPiece(v)
			}
		}
		return true
	})
}

// callPiece adds to a call. Pieces belong together by their index; servers
// without one, or with the same for all, begin a new call with a new id.
func (s *stream) callPiece(v gjson.Result) {
	index, id := v.Get("index"), v.Get("id").Str
	c := s.byIndex[index.Int()]
	if !index.Exists() && len(s.calls) > 0 {
		c = s.calls[len(s.calls)-1]
	}
	if c == nil || id != "" && c.id != "" && id != c.id {
		c = &call{position: len(s.calls)}
		s.calls = append(s.calls, c)
		s.byIndex[index.Int()] = c
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "index":
		case "id":
			if c.id == "" {
				c.id = v.Str
			}
		case "type":
			if v.Str != "" {
				c.kind = v.Str
			}
		case "function":
			s.grow(c, v, "arguments")
		case "custom":
			s.grow(c, v, "input")
		default:
			if v.Type != gjson.Null {
				c.extra = append(c.extra, key.Raw+":"+v.Raw)
			}
		}
		return true
	})
}

func (s *stream) legacyPiece(v gjson.Result) {
	if len(s.calls) == 0 {
		s.calls = []*call{{kind: "function_call"}}
	}
	s.grow(s.calls[0], v, "arguments")
}

func (s *stream) grow(c *call, v gjson.Result, field string) {
	if c.name == "" {
		c.name = v.Get("name").Str
	}
	args := v.Get(field)
	text := args.Str
	if args.IsObject() {
		text = args.Raw // a server that forgets to quote them sends them whole
	}
	c.args.WriteString(text)
	if text != "" {
		s.send(llm.Delta{Arguments: text, Call: c.position, Tool: c.name})
	}
}

func (s *stream) send(d llm.Delta) {
	if s.emit != nil && d != (llm.Delta{}) {
		s.delivered = true
		s.emit(d)
	}
}

// message writes the message as an answer in one piece would hold it.
func (s *stream) message() string {
	var b strings.Builder
	b.WriteString(`{"content":`)
	if s.content.Len() > 0 {
		b.WriteString(exchange.Quote(s.content.String()))
	} else {
		b.WriteString("null")
	}
	if s.refusal.Len() > 0 {
		b.WriteString(`,"refusal":` + exchange.Quote(s.refusal.String()))
	}
	if s.thought != "" {
		b.WriteString(`,"` + s.thought + `":` + exchange.Quote(s.reasoning.String()))
	}
	if len(s.details) > 0 {
		b.WriteString(`,"reasoning_details":[` + strings.Join(s.details, ",") + "]")
	}
	var calls []string
	for _, c := range s.calls {
		if c.kind == "function_call" {
			b.WriteString(`,"function_call":` + c.body("arguments"))
			continue
		}
		calls = append(calls, c.String())
	}
	if len(calls) > 0 {
		b.WriteString(`,"tool_calls":[` + strings.Join(calls, ",") + "]")
	}
	return b.String() + "}"
}

// String writes the call as an entry of tool_calls.
func (c *call) String() string {
	var b strings.Builder
	b.WriteByte('{')
	if c.id != "" {
		b.WriteString(`"id":` + exchange.Quote(c.id) + ",")
	}
	if c.kind == "custom" {
		b.WriteString(`"type":"custom","custom":` + c.body("input"))
	} else {
		b.WriteString(`"type":"function","function":` + c.body("arguments"))
	}
	for _, member := range c.extra {
		b.WriteString("," + member)
	}
	return b.String() + "}"
}

func (c *call) body(field string) string {
	return `{"name":` + exchange.Quote(c.name) + `,"` + field + `":` + exchange.Quote(c.args.String()) + "}"
}
