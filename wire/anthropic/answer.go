package anthropic

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

var _ wire.Answers = Codec{}

// DecodeAnswer reads a message in one piece; see wire.Answers.
func (Codec) DecodeAnswer(body []byte) (wire.Answer, error) {
	v, err := codec.ParseAnswer(body)
	if err != nil {
		return wire.Answer{}, err
	}
	content := v.Get("content")
	if !content.IsArray() {
		return wire.Answer{}, codec.NoAnswer("it has no content")
	}
	var u counts
	u.add(v)
	for b := range rawjson.Items(content) {
		u.addBlock(b)
	}
	a := wire.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Reason: v.Get("stop_reason").Str, Usage: u.usage()}
	a.Stop = cmp.Or(codec.StopOf(a.Reason), wire.StopOther)
	a.Message, err = decodeContent(content.Raw)
	return a, err
}

// decodeContent reads the content of an answer as the message that stands for it in
// later requests.
func decodeContent(content string) (thread.Message, error) {
	list, err := DecodeMessage(`{"role":"assistant","content":` + content + `}`)
	if err != nil {
		return thread.Message{}, codec.NoAnswer("%w", err)
	}
	return list[0], nil
}

// counts adds up the usage that several events report. The counts of a message only
// grow, and some gateways send zeros in one of the events, so the largest counts.
type counts struct {
	input, output, read, write, thinking int
	mixed                                bool
}

// add reads the usage of a message or of an event.
func (c *counts) add(of gjson.Result) {
	used := of.Get("usage")
	before := c.prompt()
	for _, n := range []struct {
		to   *int
		from string
	}{
		{&c.input, "input_tokens"}, {&c.output, "output_tokens"}, {&c.read, "cache_read_input_tokens"},
		{&c.write, "cache_creation_input_tokens"}, {&c.thinking, "output_tokens_details.thinking_tokens"},
	} {
		*n.to = max(*n.to, rawjson.Count(used.Get(n.from)))
	}
	c.mixed = c.mixed || before > 0 && c.prompt() > before || // results of the provider's own tools
		used.Get("iterations.#").Int() > 1 || of.Get("context_management.applied_edits.#").Int() > 0
	for _, n := range rawjson.Members(used.Get("server_tool_use")) {
		c.mixed = c.mixed || n.Num > 0
	}
}

// addBlock reads a block of the answer: after the result of a tool of the provider's own the model was asked again.
func (c *counts) addBlock(b gjson.Result) {
	c.mixed = c.mixed || strings.HasSuffix(b.Get("type").Str, "_tool_result")
}

// prompt is the size of the whole prompt: input_tokens does not include the cache.
func (c *counts) prompt() int { return c.input + c.read + c.write }

func (c *counts) usage() wire.Usage {
	u := wire.Usage{Input: c.prompt(), CacheRead: c.read, CacheWrite: c.write, Output: c.output, Reasoning: c.thinking}
	u.Known = u != wire.Usage{}
	u.Mixed = c.mixed && u.Known
	return u
}
