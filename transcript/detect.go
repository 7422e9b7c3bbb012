package transcript

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// detectLines is how many lines are searched for the format.
const detectLines = 200

// detect finds the format from the first line that shows it, and puts the lines back.
func detect(in *input) (Format, error) {
	first, number, err := in.next()
	if err != nil {
		return "", err
	}
	in.unread(first, number)
	if what := notRead(gjson.ParseBytes(first)); what != "" {
		return "", fmt.Errorf("%w: this looks like %s, which is not read; read are %s", ErrUnknownFormat, what, joinFormats(Formats()))
	}
	format := sniff(gjson.ParseBytes(first))
	for n := 1; format == "" && n < detectLines; n++ {
		line, number, err := in.readChecked()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
		in.unread(line, number)
		format = sniff(gjson.ParseBytes(line))
	}
	if format == "" {
		return "", fmt.Errorf("%w: the file starts with %s; name the format if it is one of %s", ErrUnknownFormat, describeValue(gjson.ParseBytes(in.pending[0].line)), joinFormats(Formats()))
	}
	return format, nil
}

// unread are files of agents and others that are not read: their blocks are like those of other formats, and
// most of them would be lost. A document or a first line has all of the paths.
var unread = []struct {
	what    string
	has     []string
	matches func(gjson.Result) bool // nil for any
	example string
}{
	{"a session of Continue", []string{"sessionId", "workspaceDirectory", "history"}, nil, `{"sessionId":"1","title":"t","workspaceDirectory":"/w","history":[{"message":{"role":"user","content":"Hi."}}]}`},
	{"a thread of Zed", []string{"messages.0.content.0.Text"}, nil, `{"version":"0.2.0","messages":[{"role":"user","content":[{"Text":"Hi."}]}]}`},
	{"a thread of Zed", []string{"messages.0.User.content"}, nil, `{"version":"0.3.0","messages":[{"User":{"content":[{"Text":"Hi."}]}}]}`},
	{"a session of Windsurf", []string{"trajectory.steps.0.type"}, nil, `{"trajectory":{"steps":[{"type":"CORTEX_STEP_TYPE_USER_INPUT"}]}}`},
	{"a chat of Cody", []string{"interactions.0.humanMessage"}, nil, `{"id":"1","interactions":[{"humanMessage":{"text":"Hi."}}]}`},
	{"a session of Kiro or Amazon Q", []string{"conversation_id", "history.0"}, nil, `{"conversation_id":"1","history":[[{"content":{"Prompt":{"prompt":"Hi."}}}]]}`},
	{"a chat of Copilot in VS Code", []string{"requests.0.message", "requests.0.response"}, nil, `{"version":3,"requests":[{"message":{"text":"Hi."},"response":[]}]}`},
	{"an export of ChatGPT", []string{"mapping", "current_node"}, nil, `{"title":"t","mapping":{},"current_node":"1"}`},
	{"an export of claude.ai", []string{"chat_messages"}, nil, `{"uuid":"1","chat_messages":[{"sender":"human","text":"Hi."}]}`},
	{"an export of Open WebUI", []string{"chat.history"}, nil, `{"id":"1","chat":{"messages":[],"history":{}}}`},
	{"a chat of LM Studio", []string{"messages.0.versions"}, nil, `{"messages":[{"versions":[{"role":"user"}]}]}`},
	{"what LangChain or LangSmith keeps", []string{"run_type", "inputs"}, nil, `{"id":"1","run_type":"llm","inputs":{}}`},
	{"what LangChain or LangSmith keeps", []string{"content"}, isLangChain, `{"type":"human","content":"Hi."}`},
	{"what LangChain or LangSmith keeps", []string{"messages.0.content"}, isLangChain, `{"messages":[{"type":"human","content":"Hi."}]}`},
	{"the list for the screen of Cline or Roo", []string{"ts", "say"}, nil, `{"ts":1,"type":"say","say":"text","text":"Hi."}`},
	{"the list of prompts of Claude Code", []string{"display", "pastedContents"}, nil, `{"display":"Hi.","pastedContents":{},"timestamp":1,"project":"/w"}`},
	{"conversations as ShareGPT has them", []string{"conversations.0.from"}, nil, `{"conversations":[{"from":"human","value":"Hi."}]}`},
}

// isLangChain recognises a message by its type, which stands in place of a role.
func isLangChain(v gjson.Result) bool {
	return !v.Get("role").Exists() && (v.Get("type").Str == "human" || v.Get("messages.0.type").Str == "human")
}

// notRead is what a line or a document looks like that is not read, or "". Exports are
// lists of such documents.
func notRead(v gjson.Result) string {
	if first := v.Get("0"); v.IsArray() && first.IsObject() {
		v = first
	}
	for _, u := range unread {
		if hasAll(v, u.has) && (u.matches == nil || u.matches(v)) {
			return u.what
		}
	}
	return ""
}

// sniff returns the format that a line or a document shows, or "".
func sniff(v gjson.Result) Format {
	kind := v.Get("type").Str
	for _, f := range table {
		if f.matches != nil && f.matches(v) || slices.ContainsFunc(f.signs, func(s sign) bool { return (s.kinds == nil || slices.Contains(s.kinds, kind)) && hasAll(v, s.has) }) {
			return f.Format
		}
	}
	switch {
	case v.IsArray():
		return listFormat(v)
	case v.Get("traj").IsArray():
		return listFormat(v.Get("traj"))
	case v.Get("body").Exists():
		api := wire.APIOf(v.Get("path").Str + v.Get("url").Str)
		for _, f := range table {
			if f.decode != nil && f.API() == api {
				return f.Format
			}
		}
		if f := bodyFormat(unwrap(v.Get("body"))); f != "" {
			return f
		}
	}
	return bodyFormat(v)
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
		return geminiFormat
	case v.Get("input").Exists() && (v.Get("model").Exists() || v.Get("instructions").Exists()):
		return responsesFormat
	case messages.IsArray():
		format := listFormat(messages)
		if format == chatFormat || format == "" {
			if v.Get("system").Exists() || v.Get("anthropic_version").Exists() || v.Get("tools.0.input_schema").Exists() ||
				v.Get("max_tokens").Exists() && strings.HasPrefix(v.Get("model").Str, "claude") {
				return anthropicFormat
			}
		}
		return format
	case v.Get("role").Type == gjson.String && (v.Get("content").Exists() || v.Get("tool_calls").Exists() ||
		v.Get("parts").Exists() || v.Get("function_call").Exists()):
		return cmp.Or(messageFormat(v), chatFormat)
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
		if m.Get("role").Exists() && m.Get("content").Exists() {
			format = chatFormat
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
			return aiSDKFormat
		}
		if parts.Get("0").IsObject() {
			return geminiFormat
		}
	}
	if m.Get("toolInvocations").IsArray() {
		return aiSDKFormat
	}
	kind := m.Get("type").Str
	if !m.Get("role").Exists() {
		if isResponseItem(kind) {
			return responsesFormat
		}
		return ""
	}
	if call := m.Get("tool_calls.0"); call.IsObject() {
		switch {
		case call.Get("function").IsObject() || call.Get("custom").IsObject():
			return chatFormat
		case call.Get("function").Type == gjson.String:
			return inspectFormat
		case call.Get("name").Exists() && call.Get("arguments").Exists():
			return tau2Format
		}
	}
	if m.Get("function_call").IsObject() || m.Get("role").Str == "function" {
		return chatFormat
	}
	content := m.Get("content")
	if !content.IsArray() {
		if m.Get("role").Str == "tool" && m.Get("function").Type == gjson.String {
			return inspectFormat
		}
		if m.Get("source").Str == "generate" {
			return inspectFormat
		}
		if kind == "message" {
			return responsesFormat
		}
		return ""
	}
	for part := range rawjson.Items(content) {
		kind := part.Get("type").Str
		switch {
		case kind == "reasoning" && part.Get("reasoning").Exists():
			return inspectFormat
		case kind == "image" && part.Get("source").IsObject():
			return anthropicFormat
		case kind == "image" && part.Get("image").Exists():
			return aiSDKFormat
		case kind == "file" && part.Get("file").IsObject():
			return chatFormat
		}
		for _, f := range table {
			if slices.Contains(f.parts, kind) {
				return f.Format
			}
		}
	}
	return ""
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
func isClaudeCode(v gjson.Result) bool {
	kind := v.Get("type").Str
	switch kind {
	case "":
		return false
	case "system":
		if v.Get("session_id").Exists() {
			return true
		}
		if v.Get("systemPayload").Exists() { // of Qwen Code
			return false
		}
	case "user", "assistant":
		return v.Get("message.content").Exists() && (v.Get("uuid").Exists() || v.Get("sessionId").Exists() || v.Get("session_id").Exists())
	case "summary":
		return v.Get("leafUuid").Exists()
	case "file-history-snapshot":
		return v.Get("snapshot").Exists()
	}
	return v.Get("parentUuid").Exists() && v.Get("uuid").Exists() && !v.Get("message.parts").Exists() ||
		claudeSilent[kind] && v.Get("sessionId").Exists()
}

// describeValue describes a JSON value in messages about unknown content.
func describeValue(v gjson.Result) string {
	switch {
	case v.IsArray() && v.Get("#").Int() == 0:
		return "an empty array"
	case v.IsArray():
		return fmt.Sprintf("an array of %d elements", v.Get("#").Int())
	case v.IsObject():
		var keys []string
		for name := range rawjson.Members(v) {
			if keys = append(keys, clip.Line(name, 30)); len(keys) == 8 {
				break
			}
		}
		if len(keys) == 0 {
			return "an empty object"
		}
		return "an object with " + strings.Join(keys, ", ")
	}
	return fmt.Sprintf("the value %s", clip.Line(v.Raw, 40))
}
