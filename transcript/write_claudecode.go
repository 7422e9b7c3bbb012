package transcript

import (
	"encoding/hex"
	"encoding/json"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// claudeCodeVersion is the version that these files were tried with.
const claudeCodeVersion = "2.1.329"

// ccOutputLine is a line of a session of Claude Code.
type ccOutputLine struct {
	Parent    *string `json:"parentUuid"`
	Side      bool    `json:"isSidechain"`
	UserType  string  `json:"userType"`
	Dir       string  `json:"cwd"`
	Session   string  `json:"sessionId"`
	Version   string  `json:"version"`
	Type      string  `json:"type"`
	Message   any     `json:"message"`
	Meta      bool    `json:"isMeta,omitempty"`
	Summary   bool    `json:"isCompactSummary,omitempty"`
	UUID      string  `json:"uuid"`
	Timestamp string  `json:"timestamp"`
}

// claudeCode writes a session of Claude Code: one line for each message, whose parent is the one
// before.
func (w *writer) claudeCode(messages []thread.Message) {
	w.out.Path = flatFolderName(w.session.Dir, notPlain) + "/" + w.session.ID + ".jsonl"
	if w.session.Title != "" {
		w.line(struct {
			Type    string `json:"type"`
			Title   string `json:"customTitle"`
			Session string `json:"sessionId"`
		}{"custom-title", w.session.Title, w.session.ID})
	}
	var parent *string
	for i := range messages {
		m := &messages[i]
		at := timestamp(w.timeOf(m))
		for _, element := range w.elements(anthropic.Codec{}, "messages", m) {
			if m.Role == thread.Assistant && element.Get("role").Str != "assistant" {
				continue // the user message that the encoder puts before a first answer
			}
			uuid := w.uuid(w.lines)
			line := ccOutputLine{
				Parent: parent, UserType: "external", Dir: w.session.Dir, Session: w.session.ID, Version: claudeCodeVersion,
				Type: element.Get("role").Str, Message: json.RawMessage(element.Raw), UUID: uuid, Timestamp: at,
			}
			if line.Type == "assistant" {
				line.Message = w.ccAnswer(m, json.RawMessage(element.Get("content").Raw))
			} else {
				line.Meta, line.Summary = m.IsAdded(), m.Kind == thread.Recap
			}
			w.line(line)
			parent = &uuid
		}
	}
}

// ccAnswer is an answer in the form of the API, with an id of ours.
func (w *writer) ccAnswer(m *thread.Message, content json.RawMessage) any {
	if len(content) > 0 && content[0] == '"' {
		content = json.RawMessage(`[{"type":"text","text":` + string(content) + `}]`)
	}
	sum := w.hash(w.lines)
	stop := stopWord(m, "end_turn", "tool_use")
	return struct {
		ID       string          `json:"id"`
		Type     string          `json:"type"`
		Role     string          `json:"role"`
		Model    string          `json:"model"`
		Content  json.RawMessage `json:"content"`
		Stop     string          `json:"stop_reason"`
		Sequence *string         `json:"stop_sequence"`
		Usage    map[string]int  `json:"usage"`
	}{"msg_" + hex.EncodeToString(sum[:12]), "message", "assistant", w.session.Model, content, stop, nil, map[string]int{"input_tokens": 0, "output_tokens": 0}}
}
