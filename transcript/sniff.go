package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// sniff returns the format that a line or a document shows, or "".
func sniff(v gjson.Result) Format {
	if isOpenHands(v) {
		return OpenHands
	}
	if v.IsArray() {
		return listFormat(v)
	}
	if !v.IsObject() {
		return ""
	}
	kind := v.Get("type").Str
	if isClaudeCode(v, kind) {
		return ClaudeCode
	}
	for _, s := range signs {
		if (s.kinds == nil || slices.Contains(s.kinds, kind)) && hasAll(v, s.has) {
			return s.Format
		}
	}
	switch {
	case v.Get("traj").IsArray():
		return listFormat(v.Get("traj"))
	case v.Get("body").Exists():
		api := wire.APIOf(v.Get("path").Str + v.Get("url").Str)
		for f, p := range providers {
			if p.codec.API() == api {
				return f
			}
		}
		if f := bodyFormat(unwrap(v.Get("body"))); f != "" {
			return f
		}
	}
	return bodyFormat(v)
}

// signs show the format of a line or document: its type is one of kinds, nil for any, and it
// has all of these paths.
var signs = []struct {
	Format
	kinds, has []string
}{
	{Codex, []string{"session_meta", "response_item", "event_msg", "turn_context", "compacted"}, []string{"payload"}},
	{Codex, []string{""}, []string{"record_type"}}, // the older form, whose other lines are bare items
	{Codex, []string{""}, []string{"id", "timestamp", "instructions"}},
	{Pi, []string{"session"}, []string{"cwd", "timestamp"}},
	{Pi, []string{"message"}, []string{"message.role", "timestamp"}},
	{GeminiCLI, []string{""}, []string{"sessionId", "projectHash"}},
	{GeminiCLI, []string{"gemini"}, []string{"id", "content"}},
	{KimiCode, []string{"metadata"}, []string{"protocol_version"}},
	{KimiCode, []string{"context.append_message"}, []string{"message"}},
	{OpenCode, nil, []string{"info", "messages.0.info.role"}},
	{SWEAgent, nil, []string{"history.0.role"}},
	{ToolBench, nil, []string{"answer_generation.train_messages.#"}},
	{Tau2, nil, []string{"simulations.#"}},
}

func hasAll(v gjson.Result, paths []string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool { return !v.Get(path).Exists() })
}

// unwrap reads a body that is kept as a JSON text inside a string.
func unwrap(v gjson.Result) gjson.Result {
	if v.Type == gjson.String && rawjson.Valid(v.Str) {
		return gjson.Parse(v.Str)
	}
	return v
}

// bodyFormat recognises a request body, another object that holds a list of messages,
// or a message that stands alone on its line.
func bodyFormat(v gjson.Result) Format {
	messages := v.Get("messages")
	switch {
	case v.Get("contents").IsArray():
		return Gemini
	case v.Get("input").Exists() && (v.Get("model").Exists() || v.Get("instructions").Exists()):
		return Responses
	case messages.IsArray():
		format := listFormat(messages)
		if format == OpenAIChat || format == "" {
			if v.Get("system").Exists() || v.Get("anthropic_version").Exists() || v.Get("tools.0.input_schema").Exists() ||
				v.Get("max_tokens").Exists() && strings.HasPrefix(v.Get("model").Str, "claude") {
				return Anthropic
			}
		}
		return format
	case v.Get("role").Type == gjson.String && (v.Get("content").Exists() || v.Get("tool_calls").Exists() ||
		v.Get("parts").Exists() || v.Get("function_call").Exists()):
		return cmp.Or(messageFormat(v), OpenAIChat)
	}
	return ""
}

// listFormat recognises an array of messages by the first one that is not the same in all
// formats.
func listFormat(v gjson.Result) (format Format) {
	for m := range rawjson.Items(v) {
		if told := messageFormat(m); told != "" {
			return told
		}
		if m.Get("role").Exists() {
			format = OpenAIChat
		}
		if !m.IsObject() {
			break
		}
	}
	return format
}

// messageFormat recognises the format of a message that shows it.
func messageFormat(m gjson.Result) Format {
	if parts := m.Get("parts"); parts.IsArray() {
		if parts.Get("0.type").Exists() {
			return AISDK
		}
		if parts.Get("0").IsObject() {
			return Gemini
		}
	}
	if m.Get("toolInvocations").IsArray() {
		return AISDK
	}
	kind := m.Get("type").Str
	if !m.Get("role").Exists() {
		if isResponseItem(kind) {
			return Responses
		}
		return ""
	}
	if call := m.Get("tool_calls.0"); call.IsObject() {
		switch {
		case call.Get("function").IsObject() || call.Get("custom").IsObject():
			return OpenAIChat
		case call.Get("function").Type == gjson.String:
			return Inspect
		case call.Get("name").Exists() && call.Get("arguments").Exists():
			return Tau2
		}
	}
	if m.Get("function_call").IsObject() || m.Get("role").Str == "function" {
		return OpenAIChat
	}
	content := m.Get("content")
	if !content.IsArray() {
		if m.Get("role").Str == "tool" && m.Get("function").Type == gjson.String {
			return Inspect
		}
		if m.Get("source").Str == "generate" {
			return Inspect
		}
		if kind == "message" {
			return Responses
		}
		return ""
	}
	for part := range rawjson.Items(content) {
		kind := part.Get("type").Str
		switch {
		case kind == "reasoning" && part.Get("reasoning").Exists():
			return Inspect
		case kind == "image" && part.Get("source").IsObject():
			return Anthropic
		case kind == "image" && part.Get("image").Exists():
			return AISDK
		case kind == "file" && part.Get("file").IsObject():
			return OpenAIChat
		case tellingParts[kind] != "":
			return tellingParts[kind]
		}
	}
	return ""
}

// tellingParts are the types of parts that show the format.
var tellingParts = map[string]Format{
	"tool_use": Anthropic, "tool_result": Anthropic, "thinking": Anthropic, "redacted_thinking": Anthropic,
	"document": Anthropic, "server_tool_use": Anthropic,
	"tool-call": AISDK, "tool-result": AISDK, "tool-approval-request": AISDK, "reasoning": AISDK, "file": AISDK,
	"input_text": Responses, "output_text": Responses, "input_image": Responses, "input_file": Responses,
	"image_url": OpenAIChat, "input_audio": OpenAIChat, "refusal": OpenAIChat,
}

// isResponseItem reports whether kind is an item type of the Responses API.
func isResponseItem(kind string) bool {
	switch kind {
	case "message", "reasoning", "item_reference", "compaction":
		return true
	}
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

// isClaudeCode recognises a line of a Claude Code session.
func isClaudeCode(v gjson.Result, kind string) bool {
	switch kind {
	case "":
		return false
	case "user", "assistant":
		return v.Get("message").IsObject() && (v.Get("uuid").Exists() || v.Get("sessionId").Exists() || v.Get("session_id").Exists())
	case "system":
		if v.Get("session_id").Exists() {
			return true
		}
	case "summary":
		return v.Get("leafUuid").Exists()
	case "file-history-snapshot":
		return v.Get("snapshot").Exists()
	}
	return v.Get("parentUuid").Exists() && v.Get("uuid").Exists() ||
		claudeSilent[kind] && v.Get("sessionId").Exists()
}
