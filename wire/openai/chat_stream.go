package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// NewStream returns the reader of a streamed chat completion; see wire.Answers
// (https://platform.openai.com/docs/api-reference/chat-streaming).
func (Chat) NewStream() wire.Stream { return &chatStream{byIndex: map[int64]*chatPartialCall{}} }

// chatStream collects a message from its chunks.
type chatStream struct {
	answer                      wire.Answer // without its message
	content, refusal, reasoning strings.Builder
	thought                     string // the field that reasoning came in
	details                     []*chatPartialDetail
	calls                       []*chatPartialCall
	byIndex                     map[int64]*chatPartialCall // the last call of each index
	started, done               bool
}

// chatPartialCall is a tool call that is still growing.
type chatPartialCall struct {
	id, kind, name string
	args           strings.Builder
	extra          rawjson.Fields // other members
}

// chatPartialDetail is an entry of reasoning_details that is still growing.
type chatPartialDetail struct {
	fields rawjson.Fields
	grown  map[string]*strings.Builder // the texts among them, as far as they came
	raw    string                      // the whole entry, as long as there is one piece
}

// Event takes a chunk; see wire.Stream.
func (s *chatStream) Event(data string) (wire.Progress, error) {
	if strings.TrimSpace(data) == "[DONE]" {
		s.done = true
	} else {
		s.chunk(gjson.Parse(data))
	}
	return wire.Progress{Stop: codec.StopOf(s.answer.Reason), Usage: s.answer.Usage, Done: s.done}, nil
}

func (s *chatStream) chunk(v gjson.Result) {
	a, choice := &s.answer, v.Get("choices.0")
	a.ID, a.Model = cmp.Or(v.Get("id").Str, a.ID), cmp.Or(v.Get("model").Str, a.Model)
	for _, of := range []gjson.Result{v, choice} { // Kimi has it in the choice
		if u := usageOf(of.Get("usage")); u.Known {
			a.Usage = u // the last one counts: servers that send several send running totals
		}
	}
	if !choice.IsObject() {
		return
	}
	s.started = true
	a.Reason = cmp.Or(choice.Get("finish_reason").Str, a.Reason)
	for name, v := range rawjson.Members(choice.Get("delta")) {
		s.member(name, v)
	}
}

func (s *chatStream) member(name string, v gjson.Result) {
	switch name {
	case "content":
		s.content.WriteString(v.Str)
	case "refusal":
		s.refusal.WriteString(v.Str)
	case "reasoning_content", "reasoning":
		// Some servers send both, with the same text: the first one counts.
		if v.Str != "" && (s.thought == "" || s.thought == name) {
			s.thought = name
			s.reasoning.WriteString(v.Str)
		}
	case "reasoning_details":
		for piece := range rawjson.Items(v) {
			s.detailPiece(piece)
		}
	case "tool_calls":
		for piece := range rawjson.Items(v) {
			s.callPiece(piece)
		}
	case "function_call":
		if !v.IsObject() {
			break
		}
		if len(s.calls) == 0 {
			s.calls = []*chatPartialCall{{kind: chatLegacy}}
		}
		s.calls[0].grow(v, "arguments")
	}
}

// callPiece adds to a call. The index says which; servers that send none, or always the
// same, begin a new call with a new id.
func (s *chatStream) callPiece(v gjson.Result) {
	index, id := v.Get("index"), v.Get("id").Str
	c := s.byIndex[index.Int()]
	if !index.Exists() && len(s.calls) > 0 {
		c = s.calls[len(s.calls)-1]
	}
	if c == nil || id != "" && c.id != "" && id != c.id {
		c = &chatPartialCall{}
		s.calls = append(s.calls, c)
		s.byIndex[index.Int()] = c
	}
	for name, v := range rawjson.Members(v) {
		switch name {
		case "index":
		case "id":
			c.id = cmp.Or(c.id, v.Str)
		case "type":
			c.kind = cmp.Or(v.Str, c.kind)
		case "function":
			c.grow(v, "arguments")
		case "custom":
			c.grow(v, "input")
		default:
			if v.Type != gjson.Null {
				c.extra = append(c.extra, rawjson.Field{Name: name, Value: v})
			}
		}
	}
}

// detailPiece adds to an entry of reasoning_details. Type and index say which; without an
// index each piece is an entry.
func (s *chatStream) detailPiece(v gjson.Result) {
	if v.Get("index").Exists() {
		for _, d := range slices.Backward(s.details) {
			if d.fields.Str("type") == v.Get("type").Str && d.fields.Get("index").Raw == v.Get("index").Raw {
				if d.takes(v) {
					d.raw = ""
					d.grow(v)
					return
				}
				break
			}
		}
	}
	d := &chatPartialDetail{raw: v.Raw, grown: map[string]*strings.Builder{}}
	d.grow(v)
	s.details = append(s.details, d)
}

// takes reports whether a piece belongs to the entry: not when it has another id, nor text
// behind the signature, which is for the text so far.
func (d *chatPartialDetail) takes(v gjson.Result) bool {
	id, had := v.Get("id").Str, d.fields.Str("id")
	return (id == "" || had == "" || id == had) && (d.fields.Str("signature") == "" || v.Get("text").Str == "")
}

func (d *chatPartialDetail) grow(v gjson.Result) {
	for name, v := range rawjson.Members(v) {
		n := slices.IndexFunc(d.fields, func(f rawjson.Field) bool { return f.Name == name })
		switch {
		case n < 0:
			d.fields = append(d.fields, rawjson.Field{Name: name, Value: v})
		case v.Type != gjson.Null:
			d.fields[n].Value = v
		}
		if v.Type == gjson.String && (name == "text" || name == "summary" || name == "data") {
			if d.grown[name] == nil {
				d.grown[name] = &strings.Builder{}
			}
			d.grown[name].WriteString(v.Str)
		}
	}
}

// entry is the entry as an answer in one piece would hold it.
func (d *chatPartialDetail) entry() string {
	if d.raw != "" {
		return d.raw
	}
	o := new(rawjson.Object)
	for _, f := range d.fields {
		if text := d.grown[f.Name]; text != nil {
			o.Str(f.Name, text.String())
		} else {
			o.Raw(f.Name, f.Value.Raw)
		}
	}
	return o.String()
}

func (c *chatPartialCall) grow(v gjson.Result, field string) {
	c.name = cmp.Or(c.name, v.Get("name").Str)
	args := v.Get(field)
	text := args.Str
	if args.IsObject() {
		text = args.Raw // a server that forgets to quote them sends them whole
	}
	c.args.WriteString(text)
}

// Answer reads the message so far as an answer in one piece; see wire.Stream. A stream
// that is done needs no reason to stop.
func (s *chatStream) Answer() (wire.Answer, error) {
	a := s.answer
	if !s.started {
		return a, codec.NoAnswer("the stream holds no chat completion")
	}
	err := chatReadMessage(&a, s.message())
	if !s.done && a.Reason == "" {
		a.Stop = ""
	}
	return a, err
}

// message writes the message as an answer in one piece would hold it.
func (s *chatStream) message() string {
	content := "null"
	if s.content.Len() > 0 {
		content = rawjson.Quote(s.content.String())
	}
	o := new(rawjson.Object).Str("role", "assistant").Raw("content", content).NonEmpty("refusal", s.refusal.String())
	if s.thought != "" {
		o.Str(s.thought, s.reasoning.String())
	}
	if len(s.details) > 0 {
		o.Raw("reasoning_details", rawjson.ArrayOf(s.details, (*chatPartialDetail).entry))
	}
	var calls []string
	for _, c := range s.calls {
		if c.kind == chatLegacy {
			o.Raw(chatLegacy, c.body("arguments"))
			continue
		}
		calls = append(calls, c.entry())
	}
	if len(calls) > 0 {
		o.Raw("tool_calls", rawjson.Array(calls))
	}
	return o.String()
}

// entry is the call as an entry of tool_calls.
func (c *chatPartialCall) entry() string {
	o := new(rawjson.Object).NonEmpty("id", c.id)
	if c.kind == "custom" {
		o.Str("type", "custom").Raw("custom", c.body("input"))
	} else {
		o.Str("type", "function").Raw("function", c.body("arguments"))
	}
	for _, f := range c.extra {
		o.Raw(f.Name, f.Value.Raw)
	}
	return o.String()
}

func (c *chatPartialCall) body(field string) string {
	return new(rawjson.Object).Str("name", c.name).Str(field, c.args.String()).String()
}
