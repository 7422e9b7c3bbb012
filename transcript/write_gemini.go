package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// Qwen Code and Gemini CLI hold messages in the form of Gemini's API.

// geminiContents are the contents of a message, without the one of the user that the encoder puts before
// a first answer.
func (w *writer) geminiContents(m *thread.Message) []gjson.Result {
	all := w.elements(gemini.Codec{}, "contents", m)
	if len(all) > 1 && m.Role == thread.Assistant && all[0].Get("role").Str != "model" {
		all = all[1:]
	}
	return all
}

// qwenVersion is the version that these files were tried with.
const qwenVersion = "0.24.4"

// qwenLine is a line of a session of Qwen Code.
type qwenLine struct {
	UUID       string          `json:"uuid"`
	Parent     *string         `json:"parentUuid"`
	Session    string          `json:"sessionId"`
	Timestamp  string          `json:"timestamp"`
	Type       string          `json:"type"`
	Provenance string          `json:"provenance"`
	Dir        string          `json:"cwd"`
	Version    string          `json:"version"`
	Model      string          `json:"model,omitempty"`
	Message    json.RawMessage `json:"message,omitempty"`
	Subtype    string          `json:"subtype,omitempty"`
	Payload    any             `json:"systemPayload,omitempty"`
}

// qwenCode writes a session of Qwen Code: one line for each message, whose parent is the one before.
func (w *writer) qwenCode(messages []thread.Message) {
	w.out.ID = w.uuid(-1) // it takes no UUID of version 7
	w.out.Path = flatFolderName(w.session.Dir, notPlain) + "/chats/" + w.out.ID + ".jsonl"
	var parent *string
	add := func(line qwenLine) {
		uuid := w.uuid(w.lines)
		line.UUID, line.Parent, line.Session, line.Dir, line.Version = uuid, parent, w.out.ID, w.session.Dir, qwenVersion
		w.line(line)
		parent = &uuid
	}
	for i := range messages {
		m := &messages[i]
		at := timestamp(w.timeOf(m))
		for _, element := range w.geminiContents(m) {
			line := qwenLine{Timestamp: at, Type: "user", Provenance: "real_user", Message: json.RawMessage(element.Raw)}
			switch m.Role {
			case thread.Assistant:
				line.Type, line.Provenance, line.Model = "assistant", "assistant_output", w.session.Model
			case thread.Tool:
				line.Type, line.Provenance = "tool_result", "tool_result"
			default:
				if m.IsAdded() || m.Kind == thread.Recap {
					line.Provenance = "system"
				}
			}
			add(line)
		}
	}
	if w.session.Title != "" {
		title := map[string]string{"customTitle": w.session.Title, "titleSource": "manual"}
		add(qwenLine{Timestamp: timestamp(w.last), Type: "system", Provenance: "system", Subtype: "custom_title", Payload: title})
	}
}

// geminiLine is a message in a session of Gemini CLI.
type geminiLine struct {
	ID        string            `json:"id"`
	Timestamp string            `json:"timestamp"`
	Type      string            `json:"type"`
	Content   any               `json:"content"`
	Model     string            `json:"model,omitempty"`
	Calls     []json.RawMessage `json:"toolCalls,omitempty"`
}

// geminiCLI writes a session of Gemini CLI. A result stands in the line of its call.
func (w *writer) geminiCLI(messages []thread.Message) {
	begun := w.session.Time.UTC()
	sum := sha256.Sum256([]byte(w.session.Dir))
	project := strings.Trim(flatFolderName(strings.ToLower(filepath.Base(w.session.Dir)), notPlain), "-") // where no other has that name
	w.out.Path = path.Join(project, "chats", "session-"+begun.Format("2006-01-02T15-04")+"-"+w.session.ID[:min(8, len(w.session.ID))]+".jsonl")
	w.line(struct {
		Session string `json:"sessionId"`
		Project string `json:"projectHash"`
		Start   string `json:"startTime"`
		Updated string `json:"lastUpdated"`
		Kind    string `json:"kind"`
		Title   string `json:"summary,omitempty"`
	}{w.session.ID, hex.EncodeToString(sum[:]), timestamp(begun), timestamp(begun), "main", w.session.Title})
	placed := map[string]bool{} // results, by call
	for i := range messages {
		m := &messages[i]
		if r, ok := m.Result(); ok && placed[r.CallID] {
			delete(placed, r.CallID)
			continue
		}
		line := geminiLine{Timestamp: timestamp(w.timeOf(m)), Type: "user"}
		results := resultsByCall(messages[i+1:])
		for _, element := range w.geminiContents(m) {
			line.ID = w.uuid(w.lines)
			line.Content = json.RawMessage(element.Get("parts").Raw)
			if m.Role == thread.Assistant {
				line.Type, line.Model = "gemini", w.session.Model
				line.Content, line.Calls = w.geminiAnswer(element.Get("parts"), results, line.Timestamp)
				for _, c := range m.Calls() {
					_, placed[c.ID] = results[c.ID]
				}
			}
			w.line(line)
		}
	}
}

// geminiAnswer are the text and the calls of an answer.
func (w *writer) geminiAnswer(parts gjson.Result, results map[string]thread.ToolResult, at string) (string, []json.RawMessage) {
	var said []string
	var calls []json.RawMessage
	for p := range rawjson.Items(parts) {
		call := p.Get("functionCall")
		switch {
		case call.Exists():
		case p.Get("thought").Bool():
			w.out.Lost["reasoning"]++
			continue
		case p.Get("text").Exists():
			said = append(said, p.Get("text").Str)
			continue
		default:
			for name := range rawjson.Members(p) {
				w.out.Lost["block of type "+name]++
				break
			}
			continue
		}
		o := new(rawjson.Object).Str("id", call.Get("id").Str).Str("name", call.Get("name").Str).Raw("args", call.Get("args").Raw)
		if r, ok := results[call.Get("id").Str]; ok {
			status := "success"
			if r.Outcome == thread.Failure {
				status = "error"
			}
			answer := thread.Message{Role: thread.Tool, Parts: []thread.Part{r}}
			for _, element := range w.elements(gemini.Codec{}, "contents", &answer) {
				o.Raw("result", element.Get("parts").Raw)
			}
			o.Str("status", status)
		}
		calls = append(calls, json.RawMessage(o.Str("timestamp", at).String()))
	}
	return strings.Join(said, "\n"), calls
}
