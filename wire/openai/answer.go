package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

var (
	_ wire.Answers = Chat{}
	_ wire.Answers = Responses{}
)

// oneMessage takes what a decoder returned for one message of the model. Anything else
// in it, such as the result of a tool that the provider ran, is an error.
func oneMessage(list []thread.Message, system []prompt.System, err error) (thread.Message, error) {
	switch {
	case err != nil:
		return thread.Message{}, codec.NoAnswer("%w", err)
	case len(list) == 0 && len(system) == 0:
		return thread.Message{Role: thread.Assistant}, nil
	case len(list) > 1 || len(system) > 0 || list[0].Role != thread.Assistant:
		return thread.Message{}, codec.NoAnswer("it is not one message of the model")
	}
	return list[0], nil
}

func usageOf(v gjson.Result) wire.Usage {
	n := func(paths ...string) int {
		for _, path := range paths {
			if c := rawjson.Count(v.Get(path)); c > 0 {
				return c
			}
		}
		return 0
	}
	u := wire.Usage{
		Input:  n("prompt_tokens", "input_tokens"),
		Output: n("completion_tokens", "output_tokens"),
		// Chat; Responses; DeepSeek; Kimi.
		CacheRead: n("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"),
		// OpenRouter.
		CacheWrite: n("prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens"),
		Reasoning:  n("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens", "reasoning_tokens"),
	}
	if u.Reasoning > 0 && n("total_tokens") == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning // xAI counts them apart
	}
	u.Known = u.Input > 0 || u.Output > 0
	return u
}

// stopOf is why the model stopped. The reason alone does not tell: refusals come with
// "stop", and so do calls from Ollama and Gemini.
func stopOf(a *wire.Answer, refused bool) wire.Stop {
	stop := cmp.Or(codec.StopOf(a.Reason), wire.StopEnd)
	switch {
	case stop != wire.StopEnd:
		return stop
	case refused:
		return wire.StopRefusal
	case len(a.Message.Calls()) > 0:
		return wire.StopTool
	}
	return stop
}

// DecodeAnswer reads the first choice of a chat completion; see wire.Answers.
func (Chat) DecodeAnswer(body []byte) (wire.Answer, error) {
	v, err := codec.ParseAnswer(body)
	if err != nil {
		return wire.Answer{}, err
	}
	choice := v.Get("choices.0")
	message := choice.Get("message")
	if !message.IsObject() {
		return wire.Answer{}, codec.NoAnswer("it has no message")
	}
	a := wire.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Reason: choice.Get("finish_reason").Str, Usage: usageOf(v.Get("usage"))}
	raw := message.Raw
	if message.Get("role").Str != string(thread.Assistant) { // some servers leave it out or send another
		raw = jsonedit.Set(raw, "role", `"assistant"`)
	}
	err = chatReadMessage(&a, raw)
	return a, err
}

// chatReadMessage reads the message of an answer, and with it why the model stopped.
func chatReadMessage(a *wire.Answer, message string) (err error) {
	if a.Message, err = oneMessage(DecodeChatMessages("[" + message + "]")); err == nil {
		a.Stop = stopOf(a, gjson.Get(message, "refusal").Str != "")
	}
	return err
}

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
	a := wire.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Reason: responsesReason(v), Usage: responsesUsage(v, items)}
	var err error
	if a.Message, err = oneMessage(decodeItems(raw, true)); err != nil {
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

// responsesUsage reads the usage of a response. It is mixed where OpenAI ran tools, as its items tell:
// its own, or those that a stream brought.
func responsesUsage(v gjson.Result, items []string) wire.Usage {
	u := usageOf(v.Get("usage"))
	if !u.Known {
		return u
	}
	for _, item := range slices.Concat(rawjson.RawItems(v.Get("output"), nil), items) {
		kind := gjson.Get(item, "type").Str
		u.Mixed = u.Mixed || responsesHosted[kind] || strings.HasSuffix(kind, "_output")
	}
	return u
}

// responsesHosted are the items of tools that OpenAI runs itself, and of its compaction.
var responsesHosted = scan.WordSet("web_search_call file_search_call code_interpreter_call image_generation_call mcp_call mcp_list_tools compaction")
