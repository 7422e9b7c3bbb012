package openai

import (
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
	if a.Message, err = oneMessage(decodeAnswerItems(raw)); err != nil {
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
		u.Mixed = u.Mixed || u.Known && (responsesHosted[kind.Str] || strings.HasSuffix(kind.Str, "_output"))
	}
	return u
}

// responsesHosted are the items of tools that OpenAI runs itself, and of its compaction.
var responsesHosted = map[string]bool{
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_call": true, "mcp_list_tools": true, "compaction": true,
}
