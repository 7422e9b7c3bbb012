package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// The values every line of a Claude Code file repeats.
const (
	claudeVersion = "2.0.30"
	claudeModel   = "claude-sonnet-4-5-20250929"
	claudeBranch  = "fix/retry-storm"
)

// claudeLine is a line of a Claude Code file, in the order the client writes
// its fields. A field that a line does not have stays empty.
type claudeLine struct {
	ParentUUID  *string `json:"parentUuid"`
	IsSidechain bool    `json:"isSidechain"`
	UserType    string  `json:"userType"`
	CWD         string  `json:"cwd"`
	SessionID   string  `json:"sessionId"`
	Version     string  `json:"version"`
	GitBranch   string  `json:"gitBranch"`
	Type        string  `json:"type"`
	Subtype     string  `json:"subtype,omitempty"`
	Content     string  `json:"content,omitempty"`
	Level       string  `json:"level,omitempty"`
	Message     any     `json:"message,omitempty"`
	RequestID   string  `json:"requestId,omitempty"`
	IsMeta      *bool   `json:"isMeta,omitempty"`
	UUID        string  `json:"uuid"`
	Timestamp   string  `json:"timestamp"`
	ToolResult  any     `json:"toolUseResult,omitempty"`
}

type claudeMessage struct {
	ID           string       `json:"id,omitempty"`
	Type         string       `json:"type,omitempty"`
	Role         string       `json:"role"`
	Model        string       `json:"model,omitempty"`
	Content      any          `json:"content"`
	StopReason   *string      `json:"stop_reason,omitempty"`
	StopSequence *string      `json:"stop_sequence,omitempty"`
	Usage        *claudeUsage `json:"usage,omitempty"`
}

type claudeUsage struct {
	InputTokens  int `json:"input_tokens"`
	CacheCreated int `json:"cache_creation_input_tokens"`
	CacheRead    int `json:"cache_read_input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

type object = map[string]any

// claudeRecorder writes lines. Every line of the main chain has the one before
// it as its parent; a side chain starts a tree of its own.
type claudeRecorder struct {
	buf     bytes.Buffer
	session string
	id      string
	lines   int
	msgs    int
	sigs    int
	size    int // characters so far, for the usage figures
	parent  *string
	side    bool
	err     error
	todos   []Todo
}

func recordClaudeCode(s *Session) ([]byte, error) {
	r := &claudeRecorder{session: s.Name, id: uuid(s.Name, "session", 0)}
	for _, e := range s.Events {
		if e.System == "summary" {
			r.raw(object{"type": "summary", "summary": e.Say, "leafUuid": *r.parent})
			continue
		}
		r.event(e)
	}
	return r.buf.Bytes(), r.err
}

func (r *claudeRecorder) event(e Event) {
	switch {
	case e.User != "":
		// The client keeps a snapshot of the files it has changed before
		// every user message. The line has no place in the tree.
		next := uuid(r.session, "line", r.lines+1)
		r.raw(object{"type": "file-history-snapshot", "messageId": next, "isSnapshotUpdate": false,
			"snapshot": object{"messageId": next, "trackedFileBackups": object{}, "timestamp": stamp(e.At)}})
		r.line(e.At, claudeLine{Type: "user", Message: claudeMessage{Role: "user", Content: e.User}})
		r.size += len(e.User)
	case e.System != "":
		no := false
		r.line(e.At, claudeLine{Type: "system", Subtype: e.System, Content: e.Say, Level: "info", IsMeta: &no})
	default:
		r.assistant(e)
	}
}

// assistant writes one API message, a line for each block, and then the
// results.
func (r *claudeRecorder) assistant(e Event) {
	r.msgs++
	var blocks []object
	if e.Think != "" {
		r.sigs++
		blocks = append(blocks, object{"type": "thinking", "thinking": e.Think, "signature": signature(r.session, r.sigs)})
	}
	if e.Say != "" {
		blocks = append(blocks, object{"type": "text", "text": e.Say})
	}
	for _, c := range e.Calls {
		name, input := claudeCall(c.Call)
		blocks = append(blocks, object{"type": "tool_use", "id": toolUseID(c), "name": name, "input": input})
	}
	written := len(e.Think) + len(e.Say)
	for _, c := range e.Calls {
		written += len(argumentText(c.Call))
	}
	usage := &claudeUsage{InputTokens: 4, CacheCreated: 600, CacheRead: 14000 + r.size/4, OutputTokens: written/4 + 1}
	r.size += written
	for i, b := range blocks {
		var stop *string
		if i == len(blocks)-1 {
			reason := "end_turn"
			if len(e.Calls) > 0 {
				reason = "tool_use"
			}
			stop = &reason
		}
		r.line(e.At.Add(time.Duration(i)*40*time.Millisecond), claudeLine{
			Type:      "assistant",
			RequestID: "req_011C" + stableID(r.session, "request", r.msgs)[:20],
			Message: claudeMessage{
				ID: "msg_01" + stableID(r.session, "message", r.msgs)[:22], Type: "message", Role: "assistant",
				Model: claudeModel, Content: []object{b}, StopReason: stop, Usage: usage,
			},
		})
	}
	for _, c := range e.Calls {
		r.result(c)
	}
}

// result writes what a call gave. A call that was interrupted has no result;
// the client only notes that the user stopped it.
func (r *claudeRecorder) result(c DoneCall) {
	if c.Interrupted {
		r.line(c.At, claudeLine{Type: "user", Message: claudeMessage{Role: "user",
			Content: []object{{"type": "text", "text": "[Request interrupted by user for tool use]"}}}})
		return
	}
	if len(c.Side) > 0 {
		r.sideChain(c)
	}
	block := object{"type": "tool_result", "tool_use_id": toolUseID(c), "content": c.Result.Text}
	if c.Result.Failed {
		block["is_error"] = true
	}
	r.size += len(c.Result.Text)
	r.line(c.At, claudeLine{Type: "user",
		Message:    claudeMessage{Role: "user", Content: []object{block}},
		ToolResult: r.secondCopy(c)})
}

// sideChain writes the conversation of a sub-agent, which starts with its
// prompt and has no parent.
func (r *claudeRecorder) sideChain(c DoneCall) {
	parent := r.parent
	r.parent, r.side = nil, true
	r.line(c.Side[0].At, claudeLine{Type: "user", Message: claudeMessage{Role: "user", Content: c.Prompt}})
	size := r.size
	for _, e := range c.Side {
		r.event(e)
	}
	r.parent, r.side, r.size = parent, false, size
}

// secondCopy is the short copy of a result that the client keeps for its own
// screen.
func (r *claudeRecorder) secondCopy(c DoneCall) any {
	if c.Result.Failed && c.Tool != ToolBash {
		return "Error: " + head(c.Result.Text, 200)
	}
	switch c.Tool {
	case ToolRead:
		return object{"type": "text", "file": object{"filePath": absolute(c.Path), "content": head(c.Result.Content, 400),
			"numLines": c.Result.Lines, "startLine": max(1, c.From)}}
	case ToolBash:
		return object{"stdout": head(c.Result.Text, 400), "stderr": "", "interrupted": false, "isImage": false}
	case ToolGlob, ToolGrep:
		return object{"mode": "content", "numLines": strings.Count(c.Result.Text, "\n") + 1, "content": head(c.Result.Text, 400)}
	case ToolEdit:
		return object{"filePath": absolute(c.Path), "oldString": head(c.Old, 200), "newString": head(c.New, 200), "replaceAll": false, "userModified": false}
	case ToolWrite:
		return object{"type": "create", "filePath": absolute(c.Path), "content": head(c.Content, 200)}
	case ToolTodo:
		old := r.todos
		r.todos = c.Todos
		return object{"oldTodos": claudeTodos(old), "newTodos": claudeTodos(c.Todos)}
	case ToolTask:
		return object{"status": "completed", "prompt": head(c.Prompt, 200), "totalToolUseCount": sideCalls(c)}
	}
	return head(c.Result.Text, 200)
}

// line writes one line of the tree.
func (r *claudeRecorder) line(at time.Time, l claudeLine) {
	r.lines++
	l.ParentUUID = r.parent
	l.IsSidechain = r.side
	l.UserType = "external"
	l.CWD = virtualRoot
	l.SessionID = r.id
	l.Version = claudeVersion
	l.GitBranch = claudeBranch
	l.UUID = uuid(r.session, "line", r.lines)
	l.Timestamp = stamp(at)
	r.raw(l)
	r.parent = &l.UUID
}

func (r *claudeRecorder) raw(v any) {
	data, err := marshal(v)
	if err != nil && r.err == nil {
		r.err = err
	}
	r.buf.Write(data)
	r.buf.WriteByte('\n')
}

func toolUseID(c DoneCall) string { return "toolu_01" + c.ID[:22] }

// uuid makes an identifier of the usual shape from a counter.
func uuid(session, kind string, n int) string {
	h := stableID(session, kind, n)
	return fmt.Sprintf("%s-%s-4%s-8%s-%s", h[:8], h[8:12], h[13:16], h[17:20], h[20:32])
}

// signature is not a real signature: nobody can check it, but it has the look
// and the length of one.
func signature(session string, n int) string {
	text := stableID(session, "signature", n) + stableID(session, "signature", -n)
	return base64.StdEncoding.EncodeToString([]byte(text))
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }

// head cuts a text after at most n bytes, at the end of a line if it can.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if i := strings.LastIndexByte(s[:n], '\n'); i > 0 {
		return s[:i]
	}
	return strings.ToValidUTF8(s[:n], "")
}

func sideCalls(c DoneCall) int {
	n := 0
	for _, e := range c.Side {
		n += len(e.Calls)
	}
	return n
}
