package openai

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	wire "github.com/palimpsest-ai/palimpsest/wire/openai"
)

// answer is a chat completion or a response, as it came or as a stream built it
// up.
type answer struct {
	model   string
	message string // JSON; of a response, the array of its items
	items   bool   // it is a response
	refusal bool
	stop    string
	usage   llm.Usage
}

// readWhole reads an answer that is not streamed.
func readWhole(provider string, r *exchange.Response) (*answer, error) {
	body, err := exchange.Whole(provider, r)
	if err != nil {
		return nil, err
	}
	v := gjson.Parse(body)
	choice := v.Get("choices.0")
	if e := llm.Failure(provider, r.Status, []byte(choice.Raw)); e != nil {
		return nil, e // OpenRouter: the provider behind it failed
	}
	message := choice.Get("message")
	if !message.IsObject() {
		return nil, exchange.Garbage(r, "the answer is not a chat completion: it has no message", body)
	}
	return &answer{
		model: v.Get("model").Str, message: message.Raw, refusal: message.Get("refusal").Str != "",
		stop: choice.Get("finish_reason").Str, usage: counts(v.Get("usage")),
	}, nil
}

// reply makes the portable answer.
func (a *answer) reply(r *exchange.Response, schema *llm.Schema) (*llm.Reply, error) {
	if k := failedStop(a.stop); k != "" {
		return nil, &llm.APIError{Kind: k, Status: r.Status, RequestID: r.RequestID, Code: a.stop, Message: "the provider stopped the answer"}
	}
	m, err := a.portable()
	if err != nil {
		return nil, exchange.Garbage(r, "the answer cannot be read: "+err.Error(), "")
	}
	reply := &llm.Reply{
		Message: m, Text: m.Text(), Stop: stopOf(a.stop), Usage: a.usage,
		RequestID: r.RequestID, Model: a.model,
	}
	switch {
	case a.refusal && reply.Stop == llm.StopEnd:
		reply.Stop = llm.StopRefusal
	case len(m.Calls()) > 0 && reply.Stop == llm.StopEnd:
		reply.Stop = llm.StopTool // Ollama and Gemini say "stop"
	}
	return reply, exchange.Structured(r, reply, schema)
}

func (a *answer) portable() (thread.Message, error) {
	if a.items {
		return assistant(wire.DecodeItems(a.message))
	}
	// The role is known; some servers leave it out or send another.
	return assistant(wire.DecodeChatMessages("[" + withRole(a.message) + "]"))
}

// assistant joins what was read to one message of the model. It is no longer
// tied to the place that it had in the answer.
func assistant(list []thread.Message, _ []prompt.System, err error) (thread.Message, error) {
	m := thread.Message{Role: thread.Assistant}
	for i := range list {
		m.Parts = append(m.Parts, list[i].Parts...)
	}
	return m, err
}

// withRole writes the message anew with the role and without what is null: a
// null says nothing, and not every server takes it back.
func withRole(message string) string {
	var b strings.Builder
	b.WriteString(`{"role":"assistant"`)
	gjson.Parse(message).ForEach(func(key, v gjson.Result) bool {
		if key.Str != "role" && v.Type != gjson.Null {
			b.WriteString("," + key.Raw + ":" + v.Raw)
		}
		return true
	})
	return b.String() + "}"
}

// counts reads the usage of a chat completion or a response.
func counts(v gjson.Result) llm.Usage {
	n := func(paths ...string) int {
		for _, path := range paths {
			if c := v.Get(path); c.Type == gjson.Number && c.Num > 0 && c.Num < 1<<53 {
				return int(c.Num)
			}
		}
		return 0
	}
	u := llm.Usage{
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

func stopOf(reason string) llm.Stop {
	switch strings.ToLower(reason) {
	case "stop", "eos", "eos_token", "end_turn", "stop_sequence", "":
		return llm.StopEnd
	case "length", "max_tokens", "model_length":
		return llm.StopLength
	case "tool_calls", "function_call", "tool_use":
		return llm.StopTool
	case "refusal":
		return llm.StopRefusal
	case "content_filter", "safety", "recitation", "prohibited_content", "sensitive":
		return llm.StopFilter
	case "model_context_window_exceeded":
		return llm.StopContext // z.ai
	}
	return llm.StopOther
}

// failedStop reads reasons to stop that are failures of the provider.
func failedStop(reason string) llm.Kind {
	switch strings.ToLower(reason) {
	case "error", "network_error": // OpenRouter, z.ai
		return llm.ErrServer
	case "insufficient_system_resource": // DeepSeek
		return llm.ErrOverloaded
	}
	return ""
}
