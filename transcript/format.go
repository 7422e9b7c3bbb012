package transcript

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Format is the format of a file, by the name that it has in Formats.
type Format string

// The formats of lists of messages, which are told apart by their parts.
const (
	chatFormat      Format = "openai-chat"
	anthropicFormat Format = "anthropic"
	responsesFormat Format = "responses"
	geminiFormat    Format = "gemini"
	aiSDKFormat     Format = "ai-sdk"
	inspectFormat   Format = "inspect"
	tau2Format      Format = "tau2"
)

// row is all that is known of a format, besides its reader and writer. Examples of each
// format are the files in testdata that are named after it.
type row struct {
	Format
	read func(*importJob) ([]Transcript, error)
	// A line or a document with one of the signs, or that matches, has the format, and a list
	// of messages in which a part has one of these types.
	signs   []sign
	matches func(gjson.Result) bool
	parts   []string
	// list is the member that holds the messages; decode reads such a list of an API.
	list   string
	decode func(array string) ([]thread.Message, []prompt.System, error)
	// codec is that of the API whose shape the messages have; nil if models differ in it.
	codec wire.Codec
	// write is nil for a format that cannot be written. resume is the command by which the
	// agent goes on with what was written.
	write  func(*writer, []thread.Message)
	resume string
	place  Place
}

// sign says what a line or document has: a type of kinds, any if nil, and all of the paths.
type sign struct{ kinds, has []string }

// table has a row for each format, in the order in which people should be shown them.
var table = []row{
	{Format: "claude-code", codec: anthropic.Codec{}, read: readClaudeCode, write: (*writer).claudeCode,
		matches: func(v gjson.Result) bool {
			return known["claude-code"][v.Get("type").Str] && v.Get("sessionId").Exists() && !v.Get("systemPayload").Exists()
		},
		signs: []sign{
			{[]string{"system"}, []string{"session_id"}}, {[]string{"summary"}, []string{"leafUuid"}}, {[]string{"file-history-snapshot"}, []string{"snapshot"}},
			{[]string{"user", "assistant"}, []string{"message.content", "uuid"}}, {[]string{"user", "assistant"}, []string{"message.content", "sessionId"}},
			{[]string{"user", "assistant"}, []string{"message.content", "session_id"}},
			{nil, []string{"type", "parentUuid", "uuid", "!message.parts", "!systemPayload"}},
		},
		resume: "cd DIR && claude --resume ID", // it finds only sessions of the current directory
		place:  Place{Variable: "CLAUDE_CONFIG_DIR", Home: ".claude", Sub: "projects", Suffixes: []string{".jsonl"}, Project: 1, Flat: true}},
	{Format: "codex", codec: openai.Responses{}, read: readCodex, write: (*writer).codex, resume: "codex resume ID",
		signs: []sign{
			{[]string{"session_meta", "response_item", "event_msg", "turn_context", "compacted"}, []string{"payload"}},
			{[]string{""}, []string{"record_type"}}, // the older form, whose other lines are bare items
			{[]string{""}, []string{"id", "timestamp", "instructions"}},
		},
		place: Place{Variable: "CODEX_HOME", Home: ".codex", Sub: codexFolders[0], Also: codexFolders[1:], Prefix: "rollout-", Suffixes: []string{".jsonl", ".jsonl.zst"}}},
	{Format: "droid", codec: anthropic.Codec{}, read: readDroid, matches: isDroid, // before pi, whose lines its are like
		place: Place{Home: ".factory", Sub: "sessions", Suffixes: []string{".jsonl"}, Project: 1}},
	{Format: "pi", read: readPi, write: (*writer).pi, resume: "pi --session FILE",
		signs: []sign{{[]string{"session"}, []string{"cwd", "timestamp"}}, {[]string{"message"}, []string{"message.role", "timestamp"}}},
		place: Place{Variable: "PI_CODING_AGENT_DIR", Home: ".pi/agent", Sub: "sessions", Suffixes: []string{".jsonl"}, Project: 1}},
	{Format: "kilo", read: readOpenCode, matches: isKilo, // a fork of opencode, before it
		write: (*writer).openCode, resume: "cd DIR && kilo import FILE && kilo --session ID",
		place: Place{Variable: "XDG_DATA_HOME", Home: ".local/share", Sub: "kilo", Prefix: "kilo", Suffixes: []string{".db"}, Database: true}},
	{Format: "opencode", read: readOpenCode, write: (*writer).openCode, resume: "cd DIR && opencode import FILE && opencode --session ID",
		signs: []sign{{nil, []string{"info", "messages.0.info.role"}}, {nil, []string{"info.id", "messages.0.type", "messages.0.id"}}},
		place: Place{Variable: "XDG_DATA_HOME", Home: ".local/share", Sub: "opencode", Prefix: "opencode", Suffixes: []string{".db"}, Database: true}}, // one for each release channel
	{Format: "gemini-cli", codec: gemini.Codec{}, read: readGeminiCLI, write: (*writer).geminiCLI, resume: "cd DIR && gemini --resume ID",
		signs: []sign{{[]string{""}, []string{"sessionId", "projectHash"}}, {[]string{"gemini"}, []string{"id", "content"}}},
		place: Place{Home: ".gemini", Sub: "tmp", Prefix: "session-", Suffixes: []string{".json", ".jsonl"}, Project: 2}},
	{Format: "qwen-code", codec: gemini.Codec{}, read: readQwenCode, write: (*writer).qwenCode, resume: "cd DIR && qwen --resume ID",
		signs: []sign{{[]string{"user", "assistant", "tool_result"}, []string{"sessionId", "message.parts"}}, {[]string{"system"}, []string{"sessionId", "systemPayload"}}},
		place: Place{Variable: "QWEN_HOME", Home: ".qwen", Sub: "projects", Suffixes: []string{".jsonl"}, Project: 2}},
	{Format: "copilot-cli", codec: openai.Chat{}, read: readCopilot,
		signs: []sign{{[]string{"session.start", "user.message", "assistant.message", "tool.execution_start", "tool.execution_complete"}, []string{"data", "timestamp"}}},
		place: Place{Variable: "COPILOT_HOME", Home: ".copilot", Sub: "session-state", Prefix: "events", Suffixes: []string{".jsonl"}, ID: 1}},
	{Format: "cline", codec: anthropic.Codec{}, read: readCline, matches: isCline,
		place: Place{Home: ".cline", Sub: "data/sessions", Suffixes: []string{".messages.json"}, ID: 1}},
	{Format: "cursor", codec: anthropic.Codec{}, read: readCursor,
		matches: func(v gjson.Result) bool { // the role stands beside the message
			return v.Get("role").Type == gjson.String && v.Get("message.content").Exists() && !v.Get("type").Exists()
		},
		place: Place{Home: ".cursor", Sub: "projects", Suffixes: []string{".jsonl"}, Below: "agent-transcripts"}},
	{Format: "kimi-code", codec: openai.Chat{}, read: readKimiCode, write: (*writer).kimiCode, resume: "cd DIR && kimi --session ID -m MODEL",
		signs: []sign{{[]string{"metadata"}, []string{"protocol_version"}}, {[]string{"context.append_message"}, []string{"message"}}},
		place: Place{Variable: "KIMI_CODE_HOME", Home: ".kimi-code", Sub: "sessions", Prefix: "wire", Suffixes: []string{".jsonl"}, Project: 4, ID: 3, State: kimiState}},
	{Format: "crush", read: readCrush,
		signs: []sign{{nil, []string{"prompt_tokens", "messages.0.parts"}}, {nil, []string{"meta.uuid", "messages.0.parts"}}},
		place: Place{Variable: "XDG_DATA_HOME", Home: ".local/share", Sub: "crush", Projects: "projects.json", Prefix: "crush", Suffixes: []string{".db"}, Database: true}},
	{Format: "goose", read: readGoose,
		matches: func(v gjson.Result) bool { // a message on a line says when it was made, in a number
			return v.Get("created").Type == gjson.Number && v.Get("role").Exists() && v.Get("content.0.type").Exists()
		},
		signs: []sign{{nil, []string{"conversation.0.content", "working_dir"}}, {nil, []string{"working_dir", "description", "message_count"}}},
		place: Place{Variable: "XDG_DATA_HOME", Home: ".local/share", Sub: "goose/sessions", Prefix: "sessions", Suffixes: []string{".db"}, Database: true}},
	{Format: "amp", codec: anthropic.Codec{}, read: readAmp, matches: isAmp,
		place: Place{Variable: "XDG_DATA_HOME", Home: ".local/share", Sub: "amp/threads", Prefix: "T-", Suffixes: []string{".json"}}},
	{Format: "openhands", codec: openai.Chat{}, read: readOpenHands, matches: isOpenHands},
	{Format: chatFormat, codec: openai.Chat{}, read: readRequests, list: "messages", decode: openai.DecodeChatMessages,
		parts: []string{"image_url", "input_audio", "refusal"}},
	{Format: anthropicFormat, codec: anthropic.Codec{}, read: readRequests, list: "messages", decode: anthropicMessages,
		parts: []string{"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use"}},
	{Format: responsesFormat, codec: openai.Responses{}, read: readRequests, list: "input", decode: openai.DecodeItems,
		parts: []string{"input_text", "output_text", "input_image", "input_file"}},
	{Format: geminiFormat, codec: gemini.Codec{}, read: readRequests, list: "contents", decode: geminiContents},
	{Format: aiSDKFormat, codec: openai.Chat{}, read: readAISDK,
		parts: []string{"tool-call", "tool-result", "tool-approval-request", "reasoning", "file"}},
	{Format: inspectFormat, codec: openai.Chat{}, read: readChatLike, list: "messages"},
	// A trajectory's steps in "trajectory" repeat its history.
	{Format: "swe-agent", codec: openai.Chat{}, read: readChatLike, list: "history", signs: []sign{{nil, []string{"history.0.role"}}}},
	{Format: tau2Format, codec: openai.Chat{}, read: readChatLike, list: "messages", signs: []sign{{nil, []string{"simulations.#"}}}},
	{Format: "toolbench", codec: openai.Chat{}, read: readToolBench, decode: openai.DecodeChatMessages, signs: []sign{{nil, []string{"answer_generation.train_messages.#"}}}},
}

// Formats returns every format that can be read, in the order in which people should be shown
// them.
func Formats() (list []Format) {
	for _, r := range table {
		list = append(list, r.Format)
	}
	return list
}

// Writers are the agents whose session files can be written.
func Writers() []Format {
	return slices.DeleteFunc(Formats(), func(f Format) bool { return f.row().write == nil })
}

// row is the format's, or an empty one.
func (f Format) row() row {
	if i := slices.IndexFunc(table, func(r row) bool { return r.Format == f }); i >= 0 {
		return table[i]
	}
	return row{}
}

// API is the API whose shape the messages have, as package wire names it; empty if models
// differ in it, and for an unknown format.
func (f Format) API() string {
	if c := f.row().codec; c != nil {
		return c.API()
	}
	return ""
}

// Resume is the shell command by which the agent goes on with a session that was written. In
// it DIR stands for the agent's directory, FILE for the file, ID for the session's id and MODEL for
// the agent's own name of a model. Without FILE the file must be where the agent looks for it. It is empty for what Write does not write.
func (f Format) Resume() string { return f.row().resume }
