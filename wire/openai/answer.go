package openai

import (
	"cmp"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
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

// usageOf reads the usage of a chat completion or a response.
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
