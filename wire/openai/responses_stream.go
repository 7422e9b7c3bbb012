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
	return &responsesStream{}
}

// responsesStream reads the events of a response. The last of them holds the
// response as a whole; the others count where it does not come.
type responsesStream struct {
	response gjson.Result // as the last event that had it
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
			s.now.Done, s.now.Usage = true, responsesUsage(s.response)
			s.now.Stop = stopOf(responsesReason(s.response))
		}
	}
	return s.now, nil
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
