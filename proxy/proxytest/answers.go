package proxytest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/wiretest"
)

func quote(s string) string { return rawjson.Quote(s) }

// seal is the signature of thinking that comes after these messages.
func seal(body gjson.Result, messages []gjson.Result) string {
	h := sha256.New()
	fmt.Fprintln(h, withoutMarks(body.Get("system").Raw), withoutMarks(body.Get("tools").Raw))
	for _, m := range messages {
		content := m.Get("content").Raw
		if m.Get("content").Type == gjson.String {
			content = `[{"type":"text","text":` + content + `}]`
		}
		fmt.Fprintln(h, m.Get("role").Str, withoutMarks(content))
	}
	return hex.EncodeToString(h.Sum(nil)[:9])
}

// withoutMarks leaves out cache marks, which bind nothing.
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

// unbound finds a thinking block whose signature is not that of what stands
// before it; empty when there is none.
func unbound(body gjson.Result) string {
	list := body.Get("messages").Array()
	for i, m := range list {
		for k, block := range m.Get("content").Array() {
			if block.Get("type").Str == "thinking" && block.Get("signature").Str != seal(body, list[:i]) {
				return fmt.Sprintf("messages.%d.content.%d", i, k)
			}
		}
	}
	return ""
}

// answered is the answer to a request.
func answered(q *Request, body gjson.Result, a Answer) *wiretest.Said {
	s := &wiretest.Said{
		Serial: strconv.Itoa(q.N), Model: body.Get("model").Str, Reasoning: a.Thinking, Seal: "sealed " + a.Thinking, Text: a.Text, Calls: a.Calls,
		Stop: wire.StopEnd, Usage: wire.Usage{Input: q.Tokens + 1, Output: 7, Known: true}, Tools: body.Get("tools").Raw,
	}
	if len(a.Calls) > 0 {
		s.Stop = wire.StopTool
	}
	if a.Cut {
		s.Stop = wire.StopLength
	}
	if q.API == wire.Anthropic {
		s.Seal = seal(body, body.Get("messages").Array())
	}
	return s
}
