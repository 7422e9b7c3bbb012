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

func usage(q *Request) (in, out int) { return q.Tokens + 1, 7 }

func whole(q *Request, body gjson.Result, a Answer) string {
	in, out := usage(q)
	switch q.API {
	case wire.Anthropic:
		return fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d}}`,
			q.N, body.Get("model").Raw, strings.Join(anthropicBlocks(body, a), ","), stop(a, "tool_use", "end_turn"), in, out)
	case wire.Chat:
		return fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":1,"model":%s,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
			q.N, body.Get("model").Raw, chatMessage(a), stop(a, "tool_calls", "stop"), in, out, in+out)
	case wire.Responses:
		return response(q, body, items(q, a))
	}
	return geminiBody(q, geminiParts(a))
}

func stop(a Answer, calls, end string) string {
	if len(a.Calls) > 0 {
		return calls
	}
	return end
}

func anthropicBlocks(body gjson.Result, a Answer) (list []string) {
	if a.Thinking != "" {
		list = append(list, fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":%q}`, quote(a.Thinking), seal(body, body.Get("messages").Array())))
	}
	if a.Text != "" {
		list = append(list, `{"type":"text","text":`+quote(a.Text)+`}`)
	}
	for _, c := range a.Calls {
		list = append(list, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(c.ID), quote(c.Name), c.Arguments))
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

func items(q *Request, a Answer) (list []string) {
	if a.Thinking != "" {
		list = append(list, fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[],"encrypted_content":%s}`, q.N, quote("sealed "+a.Thinking)))
	}
	if a.Text != "" {
		list = append(list, fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":%s}]}`, q.N, quote(a.Text)))
	}
	for n, c := range a.Calls {
		list = append(list, fmt.Sprintf(`{"id":"fc_%d_%d","type":"function_call","status":"completed","arguments":%s,"call_id":%s,"name":%s}`, q.N, n, quote(c.Arguments), quote(c.ID), quote(c.Name)))
	}
	return list
}

func response(q *Request, body gjson.Result, output []string) string {
	in, out := usage(q)
	used := fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, in, out, in+out)
	declared := body.Get("tools").Raw
	if declared == "" {
		declared = "[]"
	}
	return fmt.Sprintf(`{"id":"resp_%d","object":"response","created_at":1,"status":"completed","error":null,"incomplete_details":null,"model":%s,"output":[%s],"parallel_tool_calls":true,"tool_choice":"auto","tools":%s,"usage":%s}`,
		q.N, body.Get("model").Raw, strings.Join(output, ","), declared, used)
}

func geminiParts(a Answer) []string {
	var list []string
	if a.Thinking != "" {
		list = append(list, `{"text":`+quote(a.Thinking)+`,"thought":true}`)
	}
	if a.Text != "" {
		list = append(list, `{"text":`+quote(a.Text)+`}`)
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

func geminiBody(q *Request, parts []string) string {
	in, out := usage(q)
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":"gemini-test","responseId":"r%d"}`,
		strings.Join(parts, ","), in, out, in+out, q.N)
}
