package openai

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// NewStream returns the reader of a streamed response; see wire.Answers
// (https://platform.openai.com/docs/api-reference/responses-streaming).
func (Responses) NewStream() wire.Stream {
	return &responsesStream{}
}

// responsesStream reads the events of a response. The last one holds the whole response;
// the others count only when it does not come.
type responsesStream struct {
	response gjson.Result // of the last event that had one
	items    []string     // those that are complete
	now      wire.Progress
	started  bool
}

// Event takes an event; see wire.Stream.
func (s *responsesStream) Event(data string) (wire.Progress, error) {
	v := gjson.Parse(data)
	kind := v.Get("type").Str
	s.started = s.started || strings.HasPrefix(kind, "response.")
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		s.response = v.Get("response")
	case "response.output_item.done":
		if item := v.Get("item"); item.IsObject() {
			s.items = append(s.items, item.Raw)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		if s.response = v.Get("response"); s.response.Exists() {
			s.now.Done, s.now.Usage = true, responsesUsage(s.response, s.items)
			s.now.Stop = cmp.Or(codec.StopOf(responsesReason(s.response)), wire.StopEnd)
		}
	}
	return s.now, nil
}

// Answer reads the response; see wire.Stream. Before its end it holds the complete items.
func (s *responsesStream) Answer() (wire.Answer, error) {
	switch {
	case s.now.Done:
		return responsesRead(s.response, s.items)
	case !s.started:
		return wire.Answer{}, codec.NoAnswer("the stream holds no response")
	}
	a := wire.Answer{ID: s.response.Get("id").Str, Model: s.response.Get("model").Str}
	var err error
	a.Message, err = oneMessage(decodeItems(rawjson.Array(s.items), true))
	return a, err
}
