package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// kimiProtocol is the version of the records, which 2.1.0 was tried with.
const kimiProtocol = "1.5"

// kimiState is the file that says what the session is about.
const kimiState = "state.json"

// kimiLine adds a message to the context.
type kimiLine struct {
	Type    string      `json:"type"`
	Message kimiWritten `json:"message"`
	Time    int64       `json:"time"`
}

// kimiWritten is a message in the context of Kimi Code.
type kimiWritten struct {
	Role    string            `json:"role"`
	Content []map[string]any  `json:"content"`
	Calls   []kimiCall        `json:"toolCalls"`
	CallID  string            `json:"toolCallId,omitempty"`
	Failed  bool              `json:"isError,omitempty"`
	Origin  map[string]string `json:"origin,omitempty"`
}

type kimiCall struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// kimiCode writes a session of Kimi Code: the wire log adds each message as a whole, as its own import of older
// sessions does. It begins without a model, which the resume line names.
func (w *writer) kimiCode(messages []thread.Message) {
	w.out.ID = "session_" + w.session.ID
	folder := kimiFolder(w.session.Dir) + "/" + w.out.ID
	w.out.Path = path.Join(folder, "agents", kimiMain, "wire.jsonl")
	begun := w.session.Time.UnixMilli()
	w.line(map[string]any{"type": "metadata", "protocol_version": kimiProtocol, "created_at": begun})
	for i := range messages {
		m := &messages[i]
		said := kimiWritten{Role: "user", Calls: []kimiCall{}}
		r, result := m.Result()
		switch {
		case result:
			said.Role, said.CallID, said.Failed = "tool", r.CallID, r.Outcome == thread.Failure
			said.Content = w.blocks(r.Content, kimiBlock)
		case m.Kind == thread.Recap: // in the user's name, as its own summaries
			said.Origin = map[string]string{"kind": "compaction_summary"}
		case m.Role == thread.Assistant:
			said.Role = "assistant"
		case m.IsAdded():
			said.Origin = map[string]string{"kind": "injection", "variant": "palimpsest"}
		default:
			said.Origin = map[string]string{"kind": "user"}
		}
		if !result {
			said.Content = w.blocks(slices.DeleteFunc(slices.Clone(m.Parts), isCall), kimiBlock)
		}
		at := w.timeOf(m).UnixMilli()
		for _, c := range m.Calls() {
			said.Calls = append(said.Calls, kimiCall{"function", c.ID, c.Name, c.Arguments})
		}
		w.line(kimiLine{"context.append_message", said, at})
		answered := resultsByCall(messages[i+1:])
		for _, c := range said.Calls { // what follows an open call would wait for its result
			if _, ok := answered[c.ID]; !ok {
				text := []map[string]any{{"type": "text", "text": "The call was interrupted."}}
				w.line(kimiLine{"context.append_message", kimiWritten{Role: "tool", Content: text, Calls: []kimiCall{}, CallID: c.ID, Failed: true}, at})
			}
		}
	}
	state, err := json.Marshal(map[string]any{
		"id": w.out.ID, "version": 2, "cwd": w.session.Dir, "title": w.session.Title, "isCustomTitle": w.session.Title != "",
		"createdAt": begun, "updatedAt": begun, "archived": false, "agents": map[string]any{}, "custom": map[string]any{},
	})
	w.err = cmp.Or(w.err, err)
	w.out.Beside = map[string][]byte{folder + "/" + kimiState: state}
}

// kimiBlock writes a part of a message that is no call.
func kimiBlock(p thread.Part) map[string]any {
	switch p := p.(type) {
	case thread.Text:
		return map[string]any{"type": "text", "text": p.Text}
	case thread.Reasoning:
		if p.Text != "" && (p.API == "" || p.API == wire.Chat) { // no other provider sealed it
			return map[string]any{"type": "think", "think": p.Text}
		}
	case thread.Media:
		if mime, data, ok := inlineImage(p); ok {
			return map[string]any{"type": "image_url", "imageUrl": map[string]string{"url": "data:" + mime + ";base64," + data}}
		}
	}
	return nil
}

// kimiNot matches what the name of a project's folder does not hold.
var kimiNot = lazyregexp.New(`[^a-z0-9._-]+`)

// kimiFolder is the agent's name for a project.
func kimiFolder(dir string) string {
	dir = strings.TrimRight(strings.ReplaceAll(dir, `\`, "/"), "/")
	name := strings.Trim(kimiNot().ReplaceAllString(strings.ToLower(path.Base(dir)), "-"), "-")
	name = strings.Trim(name[:min(40, len(name))], "-")
	if name == "" || name == "." || name == ".." {
		name = "workspace"
	}
	sum := sha256.Sum256([]byte(dir))
	return "wd_" + name + "_" + hex.EncodeToString(sum[:])[:12]
}
