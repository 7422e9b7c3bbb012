package wiretest

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// ModelAnswer is what a provider's model says.
type ModelAnswer struct {
	// Serial makes the ids of answers differ.
	Serial, Model string
	// Reasoning comes with its Seal: a signature, or what stands for it encrypted.
	Reasoning, Seal string
	Text            string
	Calls           []thread.ToolCall
	Stop            wire.Stop
	// Usage is told when it is Known.
	Usage wire.Usage
	// Tools are those of the request as JSON, which a response repeats; may be
	// empty.
	Tools string
	// Unknown adds members and blocks that the API may grow.
	Unknown bool
}

// The words of the APIs for why a model stopped.
var (
	messageStops = map[wire.Stop]string{
		wire.StopEnd: "end_turn", wire.StopLength: "max_tokens", wire.StopTool: "tool_use", wire.StopRefusal: "refusal",
		wire.StopFilter: "refusal", wire.StopContext: "model_context_window_exceeded", wire.StopOther: "pause_turn",
	}
	chatStops = map[wire.Stop]string{
		wire.StopEnd: "stop", wire.StopLength: "length", wire.StopTool: "tool_calls", wire.StopRefusal: "stop",
		wire.StopFilter: "content_filter", wire.StopContext: "model_context_window_exceeded", wire.StopOther: "pause",
	}
	contentStops = map[wire.Stop]string{wire.StopLength: "MAX_TOKENS"}
	incomplete   = map[wire.Stop]string{
		wire.StopLength: "max_output_tokens", wire.StopFilter: "content_filter", wire.StopContext: "model_context_window_exceeded", wire.StopOther: "pause",
	}
)

func quote(s string) string { return rawjson.Quote(s) }

// Body is the answer as the provider of an API gives it in one piece.
func Body(api string, s *ModelAnswer) string {
	body := ""
	switch api {
	case wire.Anthropic:
		body = fmt.Sprintf(`{"id":"msg_%s","type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%q,"stop_sequence":null}`,
			s.Serial, quote(s.Model), s.blocks(), messageStops[s.Stop])
	case wire.Chat:
		body = fmt.Sprintf(`{"id":"chatcmpl-%s","object":"chat.completion","created":1,"model":%s,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}]}`,
			s.Serial, quote(s.Model), s.message(), chatStops[s.Stop])
	case wire.Responses:
		state, tools := `"status":"completed","incomplete_details":null`, s.Tools
		if why := incomplete[s.Stop]; why != "" {
			state = `"status":"incomplete","incomplete_details":{"reason":"` + why + `"}`
		}
		tools = cmp.Or(tools, "[]")
		body = fmt.Sprintf(`{"id":"resp_%s","object":"response","created_at":1,%s,"error":null,"model":%s,"output":[%s],"parallel_tool_calls":true,"tool_choice":"auto","tools":%s}`,
			s.Serial, state, quote(s.Model), strings.Join(s.Items(), ","), tools)
	default:
		body = fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"},"finishReason":%q,"index":0}],"modelVersion":%s,"responseId":"r%s"}`,
			s.parts(), cmp.Or(contentStops[s.Stop], "STOP"), quote(s.Model), s.Serial)
	}
	if name, usage := s.usage(api); s.Usage.Known {
		body = set(body, name, usage)
	}
	if s.Unknown {
		body = set(body, "novelty", `{"a":[1,2]}`)
	}
	return body
}

func (s *ModelAnswer) usage(api string) (name, usage string) {
	u := s.Usage
	switch api {
	case wire.Anthropic:
		return "usage", fmt.Sprintf(`{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":%d}`,
			u.Input-u.CacheRead-u.CacheWrite, u.CacheRead, u.CacheWrite, u.Output)
	case wire.Gemini:
		return "usageMetadata", fmt.Sprintf(`{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d}`, u.Input, u.Output, u.Input+u.Output)
	}
	in, out := "prompt", "completion"
	if api == wire.Responses {
		in, out = "input", "output"
	}
	return "usage", fmt.Sprintf(`{"%[1]s_tokens":%[2]d,"%[3]s_tokens":%[4]d,"total_tokens":%[5]d,"%[1]s_tokens_details":{"cached_tokens":%[6]d,"cache_write_tokens":%[7]d},"%[3]s_tokens_details":{"reasoning_tokens":%[8]d}}`,
		in, u.Input, out, u.Output, u.Input+u.Output, u.CacheRead, u.CacheWrite, u.Reasoning)
}

// each writes the calls, parted by commas.
func (s *ModelAnswer) each(write func(i int, c thread.ToolCall) string) (list []string) {
	for i, c := range s.Calls {
		list = append(list, write(i, c))
	}
	return list
}

func (s *ModelAnswer) blocks() string {
	var list []string
	if s.Reasoning != "" {
		list = append(list, `{"type":"thinking","thinking":`+quote(s.Reasoning)+`,"signature":`+quote(s.Seal)+`}`)
	}
	if s.Unknown {
		list = append(list, `{"type":"aside","note":{"n":1}}`)
	}
	if s.Text != "" {
		list = append(list, `{"type":"text","text":`+quote(s.Text)+`}`)
	}
	return strings.Join(append(list, s.each(func(_ int, c thread.ToolCall) string {
		return `{"type":"tool_use","id":` + quote(c.ID) + `,"name":` + quote(c.Name) + `,"input":` + c.Arguments + `}`
	})...), ",")
}

func (s *ModelAnswer) message() string {
	text, refusal := "null", "null"
	switch {
	case s.Stop == wire.StopRefusal:
		refusal = quote(s.Text)
	case s.Text != "":
		text = quote(s.Text)
	}
	m := `{"role":"assistant","content":` + text + `,"refusal":` + refusal
	if s.Reasoning != "" {
		m += `,"reasoning_content":` + quote(s.Reasoning)
	}
	if len(s.Calls) > 0 {
		m += `,"tool_calls":[` + strings.Join(s.each(func(_ int, c thread.ToolCall) string {
			return `{"id":` + quote(c.ID) + `,"type":"function","function":{"name":` + quote(c.Name) + `,"arguments":` + quote(c.Arguments) + `}}`
		}), ",") + `]`
	}
	return m + "}"
}

// Items are the output of the response.
func (s *ModelAnswer) Items() (list []string) {
	if s.Reasoning != "" {
		sealed := ""
		if s.Seal != "" {
			sealed = `,"encrypted_content":` + quote(s.Seal)
		}
		list = append(list, `{"id":"rs_`+s.Serial+`","type":"reasoning","summary":[{"type":"summary_text","text":`+quote(s.Reasoning)+`}]`+sealed+`}`)
	}
	if s.Text != "" {
		part := `{"type":"output_text","annotations":[],"text":`
		if s.Stop == wire.StopRefusal {
			part = `{"type":"refusal","refusal":`
		}
		list = append(list, `{"id":"msg_`+s.Serial+`","type":"message","status":"completed","role":"assistant","content":[`+part+quote(s.Text)+`}]}`)
	}
	return append(list, s.each(func(i int, c thread.ToolCall) string {
		return fmt.Sprintf(`{"id":"fc_%s_%d","type":"function_call","status":"completed","arguments":%s,"call_id":%s,"name":%s}`, s.Serial, i, quote(c.Arguments), quote(c.ID), quote(c.Name))
	})...)
}

func (s *ModelAnswer) parts() string {
	var list []string
	if s.Reasoning != "" {
		list = append(list, `{"text":`+quote(s.Reasoning)+`,"thought":true}`)
	}
	if s.Text != "" {
		list = append(list, `{"text":`+quote(s.Text)+`}`)
	}
	return strings.Join(append(list, s.each(func(i int, c thread.ToolCall) string {
		sign := ""
		if i == 0 {
			sign = `,"thoughtSignature":"c2lnbmVk"`
		}
		return `{"functionCall":{"name":` + quote(c.Name) + `,"args":` + c.Arguments + `}` + sign + `}`
	})...), ",")
}
