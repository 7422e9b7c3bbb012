package openai

import (
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
)

// finishResponses sets what only the Responses API has.
func finishResponses(e *editor, o *llm.Options, _ int, w wording) {
	if o.Schema != nil {
		e.format("text.format", "", o.Schema, w.structured)
	}
	if !gjson.GetBytes(e.body, "store").Exists() {
		e.set("store", "false")
	}
}

// readWholeResponse reads a response that is not streamed.
func readWholeResponse(provider string, r *exchange.Response) (*answer, error) {
	body, err := exchange.Whole(provider, r)
	if err != nil {
		return nil, err
	}
	return responseAnswer(r, gjson.Parse(body), nil)
}

// responseAnswer reads a response object. Where its output is empty the items
// that a stream brought stand in for it, as some servers send them only once.
func responseAnswer(r *exchange.Response, v gjson.Result, items []string) (*answer, error) {
	output := v.Get("output")
	if !output.IsArray() && len(items) == 0 {
		return nil, exchange.Garbage(r, "the answer is not a response: it has no output", v.Raw)
	}
	a := &answer{items: true, model: v.Get("model").Str, message: output.Raw, usage: counts(v.Get("usage"))}
	if len(output.Array()) == 0 {
		a.message = "[" + strings.Join(items, ",") + "]"
	}
	switch v.Get("status").Str {
	case "incomplete":
		a.stop = v.Get("incomplete_details.reason").Str
		if a.stop == "" || a.stop == "max_output_tokens" {
			a.stop = "length"
		}
	case "failed":
		a.stop = "error"
	case "cancelled":
		a.stop = "cancelled"
	}
	gjson.Parse(a.message).ForEach(func(_, item gjson.Result) bool {
		item.Get("content").ForEach(func(_, part gjson.Result) bool {
			a.refusal = a.refusal || part.Get("type").Str == "refusal"
			return true
		})
		return true
	})
	return a, nil
}

// readResponseStream reads the events of a response. The last of them holds the
// response as a whole, so the others serve those who want the pieces
// (https://platform.openai.com/docs/api-reference/responses-streaming).
func readResponseStream(provider string, r *exchange.Response, emit func(llm.Delta)) (a *answer, delivered bool, err error) {
	s := &responseStream{emit: emit, calls: map[int64]llm.Delta{}}
	err = exchange.Events(provider, r, func(_, data string) (bool, error) {
		if data != "[DONE]" {
			s.event(gjson.Parse(data))
		}
		return s.last.Exists(), nil
	})
	switch {
	case err != nil:
	case s.last.Exists():
		a, err = responseAnswer(r, s.last, s.items)
	case !s.started:
		err = exchange.Garbage(r, "the stream holds no response", "")
	default:
		err = io.ErrUnexpectedEOF
	}
	return a, s.delivered, err
}

type responseStream struct {
	emit      func(llm.Delta)     // nil when nobody wants the pieces
	calls     map[int64]llm.Delta // position and name, by the item's index
	items     []string            // the items that are complete
	last      gjson.Result        // the response as a whole
	started   bool
	delivered bool
}

func (s *responseStream) event(v gjson.Result) {
	kind := v.Get("type").Str
	s.started = s.started || strings.HasPrefix(kind, "response.")
	switch kind {
	case "response.output_text.delta":
		s.send(llm.Delta{Text: v.Get("delta").Str})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		s.send(llm.Delta{Reasoning: v.Get("delta").Str})
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		d := s.calls[v.Get("output_index").Int()]
		if d.Arguments = v.Get("delta").Str; d.Arguments != "" {
			s.send(d)
		}
	case "response.output_item.added":
		switch v.Get("item.type").Str {
		case "function_call", "custom_tool_call":
			s.calls[v.Get("output_index").Int()] = llm.Delta{Call: len(s.calls), Tool: v.Get("item.name").Str}
		}
	case "response.output_item.done":
		if item := v.Get("item"); item.IsObject() {
			s.items = append(s.items, item.Raw)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		s.last = v.Get("response")
	}
}

func (s *responseStream) send(d llm.Delta) {
	if s.emit != nil && d != (llm.Delta{}) {
		s.delivered = true
		s.emit(d)
	}
}
