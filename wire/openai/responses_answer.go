package openai

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
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
	for part := range rawjson.Items(gjson.Get(raw, "#.content|@flatten")) {
		refused = refused || part.Get("type").Str == "refusal"
	}
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
	for kind := range rawjson.Items(v.Get("output.#.type")) {
		u.Mixed = u.Mixed || u.Known && responsesHosted[kind.Str]
	}
	return u
}

// responsesHosted are the items of tools that OpenAI runs, and of its compaction.
var responsesHosted = map[string]bool{
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_call": true, "mcp_list_tools": true, "compaction": true,
}
