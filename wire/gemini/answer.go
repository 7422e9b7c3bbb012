package gemini

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

// DecodeAnswer reads a response of generateContent, its first candidate; see
// wire.Answers.
func (Codec) DecodeAnswer(body []byte) (wire.Answer, error) {
	doc := string(body)
	if err := rawjson.Check(doc); err != nil {
		return wire.Answer{}, fmt.Errorf("%w: %v", wire.ErrAnswer, err)
	}
	v := gjson.Parse(doc)
	s := &stream{}
	s.chunk(v)
	switch content := v.Get("candidates.0.content"); {
	case content.Type != gjson.Null && !content.IsObject():
		return wire.Answer{}, fmt.Errorf("%w: its content is no object", wire.ErrAnswer)
	case content.Get("role").Str == "model":
		s.content = content.Raw // its bytes are what goes back
	}
	a, err := s.Answer()
	if err == nil && a.Stop == "" {
		a.Stop = wire.StopOther
	}
	return a, err
}

// NewStream returns the reader of a streamed answer; see wire.Answers.
func (Codec) NewStream() wire.Stream { return &stream{} }

// stream adds an answer up from responses that each hold a piece.
type stream struct {
	id, model, reason string
	parts             []*partialPart
	content           string // as it came whole; empty for a stream
	usage             wire.Usage
	started           bool
}

// Event takes a response; see wire.Stream. No event says that it is the last.
func (s *stream) Event(data string) (wire.Progress, error) {
	s.chunk(gjson.Parse(data))
	return wire.Progress{Stop: s.stop(), Usage: s.usage}, nil
}

func (s *stream) chunk(v gjson.Result) {
	s.id, s.model = cmp.Or(v.Get("responseId").Str, s.id), cmp.Or(v.Get("modelVersion").Str, s.model)
	s.count(v.Get("usageMetadata"))
	candidate := v.Get("candidates.0")
	s.reason = cmp.Or(candidate.Get("finishReason").Str, v.Get("promptFeedback.blockReason").Str, s.reason)
	s.started = s.started || candidate.IsObject() || s.reason != ""
	for part := range rawjson.Items(candidate.Get("content.parts")) {
		s.part(part)
	}
}

// count takes in a usage; what a later one counts is the whole.
func (s *stream) count(v gjson.Result) {
	n := func(name string, before int) int {
		if c := v.Get(name); c.Type == gjson.Number && c.Num > 0 && c.Num < 1<<53 {
			return int(c.Num)
		}
		return before
	}
	u := s.usage
	written := n("candidatesTokenCount", u.Output-u.Reasoning)
	u.Reasoning = n("thoughtsTokenCount", u.Reasoning)
	u.Input, u.CacheRead, u.Output = n("promptTokenCount", u.Input), n("cachedContentTokenCount", u.CacheRead), written+u.Reasoning
	u.Known = u.Input > 0 || u.Output > 0
	u.Mixed = u.Known && (u.Mixed || n("toolUsePromptTokenCount", 0) > 0)
	s.usage = u
}

// part adds a part. The pieces of one text are put together, which streams cut
// where they like; what carries a signature stays a part of its own.
func (s *stream) part(v gjson.Result) {
	if last := len(s.parts) - 1; last >= 0 && isPlainText(v) {
		if before := s.parts[last].first; isPlainText(before) && before.Get("thought").Bool() == v.Get("thought").Bool() {
			s.parts[last].more.WriteString(v.Get("text").Str)
			return
		}
	}
	s.parts = append(s.parts, &partialPart{first: v})
}

// partialPart is a part, and the texts that were put to it.
type partialPart struct {
	first gjson.Result
	more  strings.Builder
}

func (g *partialPart) whole() string {
	if g.more.Len() == 0 {
		return g.first.Raw
	}
	return jsonedit.Set(g.first.Raw, "text", rawjson.Quote(g.first.Get("text").Str+g.more.String()))
}

func isPlainText(part gjson.Result) bool {
	return part.Get("text").Exists() && !part.Get("thoughtSignature").Exists() && !part.Get("thought_signature").Exists()
}

// Answer reads the parts that came; see wire.Stream.
func (s *stream) Answer() (wire.Answer, error) {
	if !s.started {
		return wire.Answer{}, fmt.Errorf("%w: it has no candidate", wire.ErrAnswer)
	}
	a := wire.Answer{ID: s.id, Model: s.model, Reason: s.reason, Usage: s.usage, Stop: s.stop()}
	content := s.content
	if content == "" && len(s.parts) > 0 {
		content = `{"role":"model","parts":` + rawjson.ArrayOf(s.parts, (*partialPart).whole) + `}`
	}
	a.Message.Role = thread.Assistant
	if content == "" {
		return a, nil // blocked, or nothing said
	}
	list, err := DecodeContents("[" + content + "]")
	if err != nil {
		return a, fmt.Errorf("%w: %v", wire.ErrAnswer, err)
	}
	a.Message = list[0]
	if a.Stop == wire.StopEnd && len(a.Message.Calls()) > 0 {
		a.Stop = wire.StopTool // the API says STOP
	}
	return a, nil
}

func (s *stream) stop() wire.Stop {
	switch s.reason {
	case "":
		return ""
	case "STOP":
		return wire.StopEnd
	case "MAX_TOKENS":
		return wire.StopLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		return wire.StopFilter
	}
	return wire.StopOther
}
