package openai

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// DecodeAnswer reads a response in one piece; see wire.Answers.
func (Responses) DecodeAnswer(body []byte) (wire.Answer, error) {
	v, err := codec.ParseAnswer(body)
	if err != nil {
		return wire.Answer{}, err
	}
	return responsesRead(v, nil)
}

// responsesRead reads a response object. items are those that a stream brought; they
// count where the output is empty, as some servers send them only once.
func responsesRead(v gjson.Result, items []string) (wire.Answer, error) {
	output := v.Get("output")
	if !output.IsArray() && len(items) == 0 {
		return wire.Answer{}, codec.NoAnswer("it has no output")
	}
	raw := output.Raw
	if output.Get("#").Int() == 0 {
		raw = rawjson.Array(items)
	}
	a := wire.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Reason: responsesReason(v), Usage: responsesUsage(v)}
	var err error
	if a.Message, err = oneMessage(DecodeItems(raw)); err != nil {
		return a, err
	}
	refused := false
	for part := range rawjson.Items(gjson.Get(raw, "#.content|@flatten")) {
		refused = refused || part.Get("type").Str == "refusal"
	}
	a.Stop = stopOf(&a, refused)
	return a, nil
}

// responsesReason is why the model stopped, in Chat's words where the response has no
// word of its own.
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

// responsesUsage reads the usage of a response. It is mixed where OpenAI ran tools.
func responsesUsage(v gjson.Result) wire.Usage {
	u := usageOf(v.Get("usage"))
	for kind := range rawjson.Items(v.Get("output.#.type")) {
		u.Mixed = u.Mixed || u.Known && responsesHosted[kind.Str]
	}
	return u
}

// responsesHosted are the items of tools that OpenAI runs itself, and of its compaction.
var responsesHosted = map[string]bool{
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_call": true, "mcp_list_tools": true, "compaction": true,
}

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
			s.now.Done, s.now.Usage = true, responsesUsage(s.response)
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
	a.Message, err = oneMessage(DecodeItems(rawjson.Array(s.items)))
	return a, err
}
