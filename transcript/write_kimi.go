package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// kimiProtocol is the version of the records, which 2.1.0 was tried with.
const kimiProtocol = "1.5"

// kimiState is the file that says what the session is about.
const kimiState = "state.json"

// kimiCode writes a session of Kimi Code: the wire log adds each message as a whole, as its own import of older
// sessions does. It begins without a model, which the resume line names.
func (w *writer) kimiCode(messages []thread.Message) {
	w.out.ID = "session_" + w.session.ID
	folder := kimiFolder(w.session.Dir) + "/" + w.out.ID
	w.out.Path = path.Join(folder, "agents", kimiMain, "wire.jsonl")
	begun := w.session.Time.UnixMilli()
	w.line(map[string]any{"type": "metadata", "protocol_version": kimiProtocol, "created_at": begun})
	add := func(at time.Time, role string, parts []thread.Part, more map[string]any) {
		said := map[string]any{"role": role, "content": w.blocks(parts, kimiBlock), "toolCalls": []any{}}
		maps.Copy(said, more)
		w.line(map[string]any{"type": "context.append_message", "message": said, "time": at.UnixMilli()})
	}
	result := func(at time.Time, call string, failed bool, content ...thread.Part) {
		add(at, "tool", content, map[string]any{"toolCallId": call, "isError": failed})
	}
	for i := range messages {
		m, at := &messages[i], w.timeOf(&messages[i])
		r, isResult := m.Result()
		switch {
		case isResult:
			result(at, r.CallID, r.Outcome == thread.Failure, r.Content...)
		case m.Role == thread.Assistant && m.Kind != thread.Recap:
			calls := []map[string]string{}
			for _, c := range m.Calls() {
				calls = append(calls, map[string]string{"type": "function", "id": c.ID, "name": c.Name, "arguments": c.Arguments})
			}
			add(at, "assistant", slices.DeleteFunc(slices.Clone(m.Parts), isCall), map[string]any{"toolCalls": calls})
			answered := resultsByCall(messages[i+1:])
			for _, c := range m.Calls() { // what follows an open call would wait for its result
				if _, ok := answered[c.ID]; !ok {
					result(at, c.ID, true, thread.Text{Text: "The call was interrupted."})
				}
			}
		default: // its own summaries are in the user's name too
			origin := map[string]string{"kind": "user"}
			if m.Kind == thread.Recap {
				origin["kind"] = "compaction_summary"
			} else if m.IsAdded() {
				origin["kind"], origin["variant"] = "injection", "palimpsest"
			}
			add(at, "user", m.Parts, map[string]any{"origin": origin})
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
