package thread

import (
	"bytes"
	"encoding/json"
	"slices"
)

func clone(messages []Message) []Message {
	out := slices.Clone(messages)
	own(out, false)
	return out
}

// Own replaces everything that the messages of a list may share with other messages by
// copies: parts, and the content, key fields and metadata of results. Frames stay shared,
// because they never change. The list itself must be the caller's own.
func Own(messages []Message) { own(messages, true) }

// own is Own for all messages, or for those that are not Final.
func own(messages []Message, all bool) {
	n := 0
	for i := range messages {
		if all || !messages[i].Final {
			n += size(messages[i].Parts)
		}
	}
	room := make([]Part, 0, n)
	for i := range messages {
		if m := &messages[i]; all || !m.Final {
			m.Parts, room = copied(m.Parts, room)
		}
		messages[i].Final = false
	}
}

// size counts parts, including those in results.
func size(parts []Part) int {
	n := len(parts)
	for _, p := range parts {
		if r, ok := p.(ToolResult); ok {
			n += size(r.Content)
		}
	}
	return n
}

// copied writes copies of parts into room, and returns them and the rest of room.
func copied(parts, room []Part) (out, left []Part) {
	if len(parts) == 0 {
		return slices.Clip(parts), room
	}
	n := len(parts)
	out, left = room[:n:n], room[n:n]
	for i, p := range parts {
		if r, ok := p.(ToolResult); ok && r.shares() {
			r.Content, left = copied(r.Content, left)
			r.KeyFields = r.KeyFields.clone()
			if r.Determinism != nil {
				d := *r.Determinism
				r.Determinism = &d
			}
			p = r
		}
		out[i] = p
	}
	return out, left
}

// shares reports whether a plain copy of the result would share memory with it.
func (r *ToolResult) shares() bool {
	return len(r.Content) > 0 || r.KeyFields != nil || r.Determinism != nil
}

// maxDepth is how deep the values of key fields may nest, as in encoding/json. Deeper values,
// such as a map that contains itself, become nil.
const maxDepth = 10_000

func (f Fields) clone() Fields {
	if f == nil {
		return nil
	}
	return cloneMap(f, 0)
}

func cloneMap(m map[string]any, depth int) map[string]any {
	out := make(map[string]any, len(m))
	for name, v := range m {
		out[name] = cloneValue(v, depth+1)
	}
	return out
}

// cloneValue copies a JSON value. Other values are converted by encoding/json, or become nil.
func cloneValue(v any, depth int) any {
	if depth > maxDepth {
		return nil
	}
	switch v := v.(type) {
	case nil, bool, string, json.Number,
		int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return v
	case map[string]any:
		return cloneMap(v, depth)
	case Fields:
		return cloneMap(v, depth)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = cloneValue(v[i], depth+1)
		}
		return out
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out any
	if d.Decode(&out) != nil {
		return nil
	}
	return out
}
