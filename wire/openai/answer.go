package openai

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

var (
	_ wire.Answers = Chat{}
	_ wire.Answers = Responses{}
)

// answerBody parses an answer in one piece.
func answerBody(body []byte) (gjson.Result, error) {
	doc := string(body)
	if err := rawjson.Check(doc); err != nil {
		return gjson.Result{}, fmt.Errorf("%w: %v", wire.ErrAnswer, err)
	}
	return gjson.Parse(doc), nil
}

// oneMessage takes what a codec read for one message of the model. Whatever else
// is among it, such as the result of a tool that the provider ran, cannot be
// answered for.
func oneMessage(list []thread.Message, system []prompt.System, err error) (thread.Message, error) {
	switch {
	case err != nil:
		return thread.Message{}, fmt.Errorf("%w: %v", wire.ErrAnswer, err)
	case len(list) == 0 && len(system) == 0:
		return thread.Message{Role: thread.Assistant}, nil
	case len(list) > 1 || len(system) > 0 || list[0].Role != thread.Assistant:
		return thread.Message{}, fmt.Errorf("%w: it is not one message of the model", wire.ErrAnswer)
	}
	return list[0], nil
}

// usageOf reads the usage of a chat completion or a response.
func usageOf(v gjson.Result) wire.Usage {
	n := func(paths ...string) int {
		for _, path := range paths {
			if c := v.Get(path); c.Type == gjson.Number && c.Num > 0 && c.Num < 1<<53 {
				return int(c.Num)
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

// stopOf reads the reason to stop.
func stopOf(reason string) wire.Stop {
	switch strings.ToLower(reason) {
	case "stop", "eos", "eos_token", "end_turn", "stop_sequence", "":
		return wire.StopEnd
	case "length", "max_tokens", "model_length":
		return wire.StopLength
	case "tool_calls", "function_call", "tool_use":
		return wire.StopTool
	case "refusal":
		return wire.StopRefusal
	case "content_filter", "safety", "recitation", "prohibited_content", "sensitive":
		return wire.StopFilter
	case "model_context_window_exceeded":
		return wire.StopContext // z.ai
	}
	return wire.StopOther
}

// stopped is why the model stopped, where the reason alone does not tell.
func stopped(a *wire.Answer, refused bool) wire.Stop {
	stop := stopOf(a.Reason)
	switch {
	case stop != wire.StopEnd:
		return stop
	case refused:
		return wire.StopRefusal
	case len(a.Message.Calls()) > 0:
		return wire.StopTool // Ollama and Gemini say "stop"
	}
	return stop
}
