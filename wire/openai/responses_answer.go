package openai

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// DecodeAnswer reads a response in one piece; see wire.Answers.
func (Responses) DecodeAnswer(body []byte) (wire.Answer, error) {
	v, err := answerBody(body)
	if err != nil {
		return wire.Answer{}, err
	}
	return responsesRead(v, nil)
}

// responsesRead reads a response object. Where its output is empty the items
// that a stream brought stand in for it, as some servers send them only once.
func responsesRead(v gjson.Result, items []string) (wire.Answer, error) {
	output := v.Get("output")
	if !output.IsArray() && len(items) == 0 {
		return wire.Answer{}, fmt.Errorf("%w: it has no output", wire.ErrAnswer)
	}
	raw := output.Raw
	if output.Get("#").Int() == 0 {
		raw = "[" + strings.Join(items, ",") + "]"
	}
	a := wire.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Usage: responsesUsage(v)}
	var err error
	if a.Message, err = oneMessage(DecodeItems(raw)); err != nil {
		return a, err
	}
	a.Reason = responsesReason(v)
	refused := false
	gjson.Get(raw, "#.content|@flatten").ForEach(func(_, part gjson.Result) bool {
		refused = part.Get("type").Str == "refusal"
		return !refused
	})
	a.Stop = stopped(&a, refused)
	return a, nil
}

// responsesReason is why the model stopped, in the words of Chat where the
// response has none of its own.
func responsesReason(v gjson.Result) string {
	switch v.Get("status").Str {
	case "incomplete":
		if why := v.Get("incomplete_details.reason").Str; why != "" && why != "max_output_tokens" {
			return why
		}
		return "length"
	case "failed":
		return "error"
	case "cancelled":
		return "cancelled"
	}
	return ""
}

// responsesUsage reads the usage of a response, and whether it is of the prompt
// alone.
func responsesUsage(v gjson.Result) wire.Usage {
	u := usageOf(v.Get("usage"))
	v.Get("output.#.type").ForEach(func(_, kind gjson.Result) bool {
		u.Mixed = u.Known && responsesHosted[kind.Str]
		return !u.Mixed
	})
	return u
}

// responsesHosted are the items of tools that OpenAI runs, and of its compaction.
var responsesHosted = map[string]bool{
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_call": true, "mcp_list_tools": true, "compaction": true,
}

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
