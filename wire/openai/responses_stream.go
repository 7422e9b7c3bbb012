package openai

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// NewStream returns the reader of a streamed response; see wire.Answers
// (https://platform.openai.com/docs/api-reference/responses-streaming).
func (Responses) NewStream() wire.Stream {
	return &responsesStream{calls: map[int64]wire.Delta{}}
}

// responsesStream reads the events of a response. The last of them holds the
// response as a whole, so the others serve those who want the pieces.
type responsesStream struct {
	response gjson.Result         // as the last event that had it
	items    []string             // those that are complete
	calls    map[int64]wire.Delta // position and name, by the item's index
	now      wire.Progress
	started  bool
}

// Event takes an event; see wire.Stream.
func (s *responsesStream) Event(data string) (wire.Progress, error) {
	v := gjson.Parse(data)
	kind := v.Get("type").Str
	s.started = s.started || strings.HasPrefix(kind, "response.")
	s.now.Deltas = nil
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		s.response = v.Get("response")
	case "response.output_text.delta":
		s.told(wire.Delta{Text: v.Get("delta").Str})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		s.told(wire.Delta{Reasoning: v.Get("delta").Str})
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		d := s.calls[v.Get("output_index").Int()]
		if d.Arguments = v.Get("delta").Str; d.Arguments != "" {
			s.told(d)
		}
	case "response.output_item.added":
		switch v.Get("item.type").Str {
		case "function_call", "custom_tool_call":
			s.calls[v.Get("output_index").Int()] = wire.Delta{Call: len(s.calls), Tool: v.Get("item.name").Str}
		}
	case "response.output_item.done":
		if item := v.Get("item"); item.IsObject() {
			s.items = append(s.items, item.Raw)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		if s.response = v.Get("response"); s.response.Exists() {
			s.now.Done, s.now.Usage = true, responsesUsage(s.response)
			s.now.Stop = stopOf(responsesReason(s.response))
		}
	}
	return s.now, nil
}

func (s *responsesStream) told(d wire.Delta) {
	if d != (wire.Delta{}) {
		s.now.Deltas = append(s.now.Deltas, d)
	}
}

// Answer reads the response; see wire.Stream. Before its end it is made of the
// items that are complete.
func (s *responsesStream) Answer() (wire.Answer, error) {
	switch {
	case s.now.Done:
		return responsesRead(s.response, s.items)
	case !s.started:
		return wire.Answer{}, fmt.Errorf("%w: the stream holds no response", wire.ErrAnswer)
	}
	a := wire.Answer{ID: s.response.Get("id").Str, Model: s.response.Get("model").Str}
	var err error
	a.Message, err = oneMessage(DecodeItems("[" + strings.Join(s.items, ",") + "]"))
	return a, err
}
