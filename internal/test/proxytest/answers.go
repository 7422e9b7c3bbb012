package proxytest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// withoutMarks drops the cache marks of a list of blocks.
func withoutMarks(raw string) string {
	if !strings.Contains(raw, "cache_control") {
		return raw
	}
	list := gjson.Parse(raw)
	for i := range list.Array() {
		raw, _ = sjson.Delete(raw, fmt.Sprintf("%d.cache_control", i))
	}
	return raw
}

func answerOf(q *Request, body gjson.Result, a Answer) *wiretest.ModelAnswer {
	s := &wiretest.ModelAnswer{
		Serial: strconv.Itoa(q.N), Model: body.Get("model").Str, Reasoning: a.Thinking, Seal: "sealed " + a.Thinking, Text: a.Text, Calls: a.Calls,
		Stop: wire.StopEnd, Usage: wire.Usage{Input: q.Tokens + 1, CacheRead: a.Cached, Output: 7, Known: true}, Tools: body.Get("tools").Raw,
	}
	if len(a.Calls) > 0 {
		s.Stop = wire.StopTool
	}
	if a.Cut {
		s.Stop = wire.StopLength
	}
	if q.API == wire.Anthropic && a.Thinking != "" {
		s.Seal = llmtest.SealThinking(body.Raw, a.Thinking)
	}
	return s
}
