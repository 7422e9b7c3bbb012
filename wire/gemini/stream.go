package gemini

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

// NewStream returns the reader of a streamed answer; see wire.Answers.
func (Codec) NewStream() wire.Stream { return &stream{} }

// stream collects an answer from responses that each hold a piece.
type stream struct {
	answer  wire.Answer // without its message
	parts   []*partialPart
	content string // of an answer in one piece; empty for a stream
	started bool
}

// Event takes a response; see wire.Stream. No event says that it is the last.
func (s *stream) Event(data string) (wire.Progress, error) {
	s.chunk(gjson.Parse(data))
	return wire.Progress{Stop: s.answer.Stop, Usage: s.answer.Usage}, nil
}

func (s *stream) chunk(v gjson.Result) {
	a, candidate := &s.answer, v.Get("candidates.0")
	a.ID, a.Model = cmp.Or(v.Get("responseId").Str, a.ID), cmp.Or(v.Get("modelVersion").Str, a.Model)
	a.Reason = cmp.Or(candidate.Get("finishReason").Str, v.Get("promptFeedback.blockReason").Str, a.Reason)
	a.Stop = codec.StopOf(a.Reason)
	a.Usage = addUsage(a.Usage, v.Get("usageMetadata"))
	s.started = s.started || candidate.IsObject() || a.Reason != ""
	for part := range rawjson.Items(candidate.Get("content.parts")) {
		s.part(part)
	}
}

// addUsage updates the usage with the counts of a response, each of which is a total.
func addUsage(u wire.Usage, v gjson.Result) wire.Usage {
	n := func(name string, before int) int { return cmp.Or(rawjson.Count(v.Get(name)), before) }
	written := n("candidatesTokenCount", u.Output-u.Reasoning)
	u.Reasoning = n("thoughtsTokenCount", u.Reasoning)
	u.Input, u.CacheRead, u.Output = n("promptTokenCount", u.Input), n("cachedContentTokenCount", u.CacheRead), written+u.Reasoning
	u.Known = u.Input > 0 || u.Output > 0
	u.Mixed = u.Known && (u.Mixed || n("toolUsePromptTokenCount", 0) > 0)
	return u
}

// part adds a part. Streams cut a text anywhere, so its pieces are joined again; a piece
// with a signature stays a part of its own.
func (s *stream) part(v gjson.Result) {
	if last := len(s.parts) - 1; last >= 0 && isPlainText(v) {
		if before := s.parts[last].first; isPlainText(before) && before.Get("thought").Bool() == v.Get("thought").Bool() {
			s.parts[last].more.WriteString(v.Get("text").Str)
			return
		}
	}
	s.parts = append(s.parts, &partialPart{first: v})
}

// partialPart is a part and the texts that later pieces add to it.
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
	a := s.answer
	if !s.started {
		return a, codec.NoAnswer("it has no candidate")
	}
	a.Message.Role = thread.Assistant
	raw := s.content
	if raw == "" && len(s.parts) > 0 {
		raw = `{"role":"model","parts":` + rawjson.ArrayOf(s.parts, (*partialPart).whole) + `}`
	}
	if raw == "" {
		return a, nil // blocked, or nothing said
	}
	list, err := DecodeContents("[" + raw + "]")
	if err != nil {
		return a, codec.NoAnswer("%w", err)
	}
	a.Message = list[0]
	if a.Stop == wire.StopEnd && len(a.Message.Calls()) > 0 {
		a.Stop = wire.StopTool // the API says STOP
	}
	return a, nil
}
