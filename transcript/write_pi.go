package transcript

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// pi writes a session of pi, version 3: a tree that has one branch.
func (w *writer) pi(messages []thread.Message) {
	begun := timestamp(w.session.Time)
	folder := "--" + flatFolderName(strings.TrimPrefix(w.session.Dir, "/"), func(r rune) bool { return strings.ContainsRune(`/\:`, r) }) + "--"
	w.out.Path = folder + "/" + strings.NewReplacer(":", "-", ".", "-").Replace(begun) + "_" + w.session.ID + ".jsonl"
	w.line(map[string]any{"type": "session", "version": 3, "id": w.session.ID, "timestamp": begun, "cwd": w.session.Dir})
	provider := w.provider()
	var parent any
	entry := func(at, kind string, members map[string]any) {
		sum := w.hash(w.lines)
		id := hex.EncodeToString(sum[:4])
		members["type"], members["id"], members["parentId"], members["timestamp"] = kind, id, parent, at
		parent = id
		w.line(members)
	}
	entry(timestamp(w.first), "model_change", map[string]any{"provider": provider, "modelId": w.session.Model})
	if w.session.Title != "" {
		entry(timestamp(w.first), "session_info", map[string]any{"name": w.session.Title})
	}
	for i := range messages {
		m := &messages[i]
		at := w.timeOf(m)
		said := map[string]any{"timestamp": at.UnixMilli()}
		switch r, result := m.Result(); {
		case m.Role == thread.Assistant:
			stop := "stop"
			if len(m.Calls()) > 0 {
				stop = "toolUse"
			}
			said["role"], said["content"] = "assistant", w.piBlocks(m.Parts)
			said["api"], said["provider"], said["model"], said["stopReason"] = piAPI(provider), provider, w.session.Model, stop
			said["usage"] = map[string]any{
				"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
				"cost": map[string]int{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
			}
		case result:
			said["role"], said["toolCallId"], said["toolName"] = "toolResult", r.CallID, r.Tool
			said["content"], said["isError"] = w.piBlocks(r.Content), r.Outcome == thread.Failure
		case m.Kind == thread.Injected:
			entry(timestamp(at), "custom_message", map[string]any{"customType": "palimpsest", "content": w.piBlocks(m.Parts), "display": false})
			continue
		default:
			said["role"], said["content"] = "user", w.piBlocks(m.Parts)
		}
		entry(timestamp(at), "message", map[string]any{"message": said})
	}
}

// piAPI is pi's name of the API that it speaks to a provider.
func piAPI(provider string) string {
	switch provider {
	case "openai":
		return "openai-responses"
	case "google":
		return "google-generative-ai"
	}
	return "anthropic-messages"
}

// piBlocks writes the parts of a message; never null.
func (w *writer) piBlocks(parts []thread.Part) []map[string]any {
	blocks := []map[string]any{}
	for _, p := range parts {
		switch p := p.(type) {
		case thread.Text:
			blocks = append(blocks, map[string]any{"type": "text", "text": p.Text})
		case thread.Reasoning:
			block := map[string]any{"type": "thinking", "thinking": p.Text}
			switch p.API {
			case wire.Anthropic:
				block["thinkingSignature"] = p.Signature
			case wire.Responses:
				block["thinkingSignature"] = p.Raw
			}
			blocks = append(blocks, block)
		case thread.ToolCall:
			block := map[string]any{"type": "toolCall", "id": p.ID, "name": p.Name, "arguments": json.RawMessage(argumentsObject(p.Arguments))}
			if p.Signature != "" {
				block["thoughtSignature"] = p.Signature
			}
			blocks = append(blocks, block)
		case thread.Media:
			mime, data, ok := inlineImage(p)
			if !ok {
				w.countLost(p)
				continue
			}
			blocks = append(blocks, map[string]any{"type": "image", "mimeType": mime, "data": data})
		default:
			w.countLost(p)
		}
	}
	return blocks
}
