package thread

import (
	"bytes"
	"encoding/json"
	"slices"
)

func clone(messages []Message) []Message {
	out := slices.Clone(messages)
	Own(out)
	return out
}

// Own makes the messages of a list share nothing with others that could be
// written to: not the parts, nor the content, key fields and metadata of results.
// It writes to the list, which has to be the caller's own. Frames are shared,
// since they never change. The parts are kept in one array, where no append to
// one message's reaches those of the next.
func Own(messages []Message) {
	n := 0
	for i := range messages {
		n += size(messages[i].Parts)
	}
	room := make([]Part, 0, n)
	for i := range messages {
		messages[i].Parts, room = copied(messages[i].Parts, room)
	}
}

// size is the number of parts with those in results.
func size(parts []Part) int {
	n := len(parts)
	for _, p := range parts {
		if r, ok := p.(ToolResult); ok {
			n += size(r.Content)
		}
	}
	return n
}

// copied writes copies of parts into the room and returns them and the room that
// is left. Empty lists stay as they are.
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

// shares reports whether a copy of the result shares memory with it.
func (r *ToolResult) shares() bool {
	return len(r.Content) > 0 || r.KeyFields != nil || r.Determinism != nil
}

// maxDepth is how deep the values of key fields may nest, as deep as
// encoding/json allows. What lies deeper, such as a map that holds itself, is nil.
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

// cloneValue copies a JSON value. Anything else becomes what JSON makes of it,
// or nil.
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
