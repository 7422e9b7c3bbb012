package codec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// NoAnswer is an error that wraps wire.ErrAnswer.
func NoAnswer(format string, args ...any) error {
	return fmt.Errorf("%w: %w", wire.ErrAnswer, fmt.Errorf(format, args...))
}

// ParseAnswer parses an answer in one piece. The error wraps wire.ErrAnswer.
func ParseAnswer(body []byte) (gjson.Result, error) {
	doc := string(body)
	if err := rawjson.Check(doc); err != nil {
		return gjson.Result{}, NoAnswer("%w", err)
	}
	return gjson.Parse(doc), nil
}

// stops are the words of all APIs and servers for why a model stopped, in lower case.
var stops = map[string]wire.Stop{
	"stop": wire.StopEnd, "eos": wire.StopEnd, "eos_token": wire.StopEnd, "end_turn": wire.StopEnd, "stop_sequence": wire.StopEnd,
	"length": wire.StopLength, "max_tokens": wire.StopLength, "model_length": wire.StopLength,
	"tool_calls": wire.StopTool, "function_call": wire.StopTool, "tool_use": wire.StopTool,
	"refusal":        wire.StopRefusal,
	"content_filter": wire.StopFilter, "safety": wire.StopFilter, "recitation": wire.StopFilter, "prohibited_content": wire.StopFilter,
	"sensitive": wire.StopFilter, "blocklist": wire.StopFilter, "spii": wire.StopFilter, "image_safety": wire.StopFilter,
	"model_context_window_exceeded": wire.StopContext, // Anthropic, z.ai
}

// StopOf returns what a provider's word for stopping means. No word is "": a stream that
// goes on has none yet, and the codecs know what an answer without one means.
func StopOf(reason string) wire.Stop {
	if reason == "" {
		return ""
	}
	return cmp.Or(stops[strings.ToLower(reason)], wire.StopOther)
}
