package proxytest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
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

// unit is a part of an answer: whole, and as a stream sends it.
type unit struct {
	whole, start string
	deltas       []string
}

func pieces(text string) []string {
	var list []string
	for _, word := range strings.SplitAfter(text, " ") {
		if word != "" {
			list = append(list, word)
		}
	}
	if len(list) > 12 { // long answers need not be many events
		list = []string{strings.Join(list[:6], ""), strings.Join(list[6:], "")}
	}
	return list
}

func usage(q *Request) (in, out int) { return q.Tokens + 1, 7 }

func whole(q *Request, body gjson.Result, a Answer) string {
	in, out := usage(q)
	switch q.API {
	case wire.Anthropic:
		var blocks []string
		for _, b := range anthropicBlocks(body, a) {
			blocks = append(blocks, b.whole)
		}
		return fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d}}`,
			q.N, body.Get("model").Raw, strings.Join(blocks, ","), stop(a, "tool_use", "end_turn"), in, out)
	case wire.Chat:
		return fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":1,"model":%s,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
			q.N, body.Get("model").Raw, chatMessage(a), stop(a, "tool_calls", "stop"), in, out, in+out)
	case wire.Responses:
		return response(q, body, a, "completed", items(q, a))
	}
	return geminiChunk(q, geminiParts(a), true)
}

func stop(a Answer, calls, end string) string {
	if len(a.Calls) > 0 {
		return calls
	}
	return end
}

func anthropicBlocks(body gjson.Result, a Answer) []unit {
	var list []unit
	if a.Thinking != "" {
		sign := seal(body, body.Get("messages").Array())
		list = append(list, unit{
			whole: fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":%q}`, quote(a.Thinking), sign),
			start: `{"type":"thinking","thinking":"","signature":""}`,
			deltas: []string{
				`{"type":"thinking_delta","thinking":` + quote(a.Thinking) + `}`,
				`{"type":"signature_delta","signature":"` + sign + `"}`,
			},
		})
	}
	if a.Text != "" {
		u := unit{whole: `{"type":"text","text":` + quote(a.Text) + `}`, start: `{"type":"text","text":""}`}
		for _, s := range pieces(a.Text) {
			u.deltas = append(u.deltas, `{"type":"text_delta","text":`+quote(s)+`}`)
		}
		list = append(list, u)
	}
	for _, c := range a.Calls {
		head := fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":`, quote(c.ID), quote(c.Name))
		u := unit{whole: head + c.Arguments + "}", start: head + "{}}"}
		half := len(c.Arguments) / 2
		for _, s := range []string{"", c.Arguments[:half], c.Arguments[half:]} {
			u.deltas = append(u.deltas, `{"type":"input_json_delta","partial_json":`+quote(s)+`}`)
		}
		list = append(list, u)
	}
	return list
}

func chatMessage(a Answer) string {
	content := "null"
	if a.Text != "" {
		content = quote(a.Text)
	}
	m := `{"role":"assistant","content":` + content + `,"refusal":null`
	if a.Thinking != "" {
		m += `,"reasoning_content":` + quote(a.Thinking)
	}
	if len(a.Calls) > 0 {
		var calls []string
		for _, c := range a.Calls {
			calls = append(calls, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, quote(c.ID), quote(c.Name), quote(c.Arguments)))
		}
		m += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	return m + "}"
}

func items(q *Request, a Answer) []unit {
	var list []unit
	if a.Thinking != "" {
		head := fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[],"encrypted_content":`, q.N)
		list = append(list, unit{whole: head + quote("sealed "+a.Thinking) + "}", start: head + `""}`})
	}
	if a.Text != "" {
		head := fmt.Sprintf(`{"id":"msg_%d","type":"message","status":%%q,"role":"assistant","content":[%%s]}`, q.N)
		text := fmt.Sprintf(`{"type":"output_text","annotations":[],"text":%s}`, quote(a.Text))
		list = append(list, unit{whole: fmt.Sprintf(head, "completed", text), start: fmt.Sprintf(head, "in_progress", ""), deltas: pieces(a.Text)})
	}
	for n, c := range a.Calls {
		item := fmt.Sprintf(`{"id":"fc_%d_%d","type":"function_call","status":%%q,"arguments":%%s,"call_id":%s,"name":%s}`, q.N, n, quote(c.ID), quote(c.Name))
		list = append(list, unit{whole: fmt.Sprintf(item, "completed", quote(c.Arguments)), start: fmt.Sprintf(item, "in_progress", `""`), deltas: []string{c.Arguments}})
	}
	return list
}

func response(q *Request, body gjson.Result, a Answer, status string, output []unit) string {
	in, out := usage(q)
	var list []string
	for _, u := range output {
		list = append(list, u.whole)
	}
	used := "null"
	if status == "completed" {
		used = fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, in, out, in+out)
	}
	declared := body.Get("tools").Raw
	if declared == "" {
		declared = "[]"
	}
	return fmt.Sprintf(`{"id":"resp_%d","object":"response","created_at":1,"status":%q,"error":null,"incomplete_details":null,"model":%s,"output":[%s],"parallel_tool_calls":true,"tool_choice":"auto","tools":%s,"usage":%s}`,
		q.N, status, body.Get("model").Raw, strings.Join(list, ","), declared, used)
}

func geminiParts(a Answer) []string {
	var list []string
	if a.Thinking != "" {
		list = append(list, `{"text":`+quote(a.Thinking)+`,"thought":true}`)
	}
	for _, s := range pieces(a.Text) {
		list = append(list, `{"text":`+quote(s)+`}`)
	}
	for n, c := range a.Calls {
		sign := ""
		if n == 0 {
			sign = `,"thoughtSignature":"c2lnbmVk"`
		}
		list = append(list, fmt.Sprintf(`{"functionCall":{"name":%s,"args":%s}%s}`, quote(c.Name), c.Arguments, sign))
	}
	return list
}

func geminiChunk(q *Request, parts []string, last bool) string {
	in, out := usage(q)
	end := ""
	if last {
		end = `,"finishReason":"STOP"`
	}
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":"gemini-test","responseId":"r%d"}`,
		strings.Join(parts, ","), end, in, out, in+out, q.N)
}
