// Package genai reads and writes the contents of google.golang.org/genai, which are what
// the agents of ADK say: what the adapters to its versions share.
package genai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// Codec reads and writes contents in the form of Gemini's API, which is that of their
// JSON. The zero value is ready, and safe for concurrent use.
type Codec struct{}

var (
	_ adapter.Codec[*genai.Content]  = Codec{}
	_ adapter.Joiner[*genai.Content] = Codec{}
)

// API returns wire.Gemini.
func (Codec) API() string { return wire.Gemini }

// Decode reads a history. A content with several answers of tools is several messages.
func (Codec) Decode(history []*genai.Content) ([]thread.Message, error) {
	if len(history) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(history)
	if err != nil {
		return nil, fmt.Errorf("genai.Decode: %w", err)
	}
	messages, err := gemini.DecodeContents(string(raw))
	if err != nil {
		return nil, fmt.Errorf("genai.Decode: %w", err)
	}
	return messages, nil
}

// Encode writes messages of a prompt, without those of the system.
func (Codec) Encode(messages []thread.Message) ([]*genai.Content, error) {
	said := slices.DeleteFunc(slices.Clone(messages), func(m thread.Message) bool { return m.Role == thread.System })
	if len(said) == 0 {
		return nil, nil
	}
	lead := before(said)
	p := &prompt.Prompt{Messages: append(lead, said...)}
	body, err := gemini.Codec{}.Encode(p)
	if err != nil {
		return nil, fmt.Errorf("genai.Encode: %w", err)
	}
	var written struct {
		Contents []struct {
			Role  string
			Parts []part
		}
	}
	if err := json.Unmarshal(body, &written); err != nil {
		return nil, fmt.Errorf("genai.Encode: %w", err)
	}
	contents := written.Contents[min(len(lead), len(written.Contents)):]
	out := make([]*genai.Content, len(contents))
	for i, c := range contents {
		out[i] = &genai.Content{Role: c.Role}
		for j := range c.Parts {
			c.Parts[j].Part.ThoughtSignature = c.Parts[j].ThoughtSignature
			out[i].Parts = append(out[i].Parts, &c.Parts[j].Part)
		}
	}
	return out, nil
}

// before is a beginning for messages from the middle of a conversation, so that they are
// written as they are in one: the API wants it to begin with the user, and answers of
// tools behind their calls. Each message of it becomes a content of its own.
func before(said []thread.Message) []thread.Message {
	user := thread.NewMessage(thread.User, "-")
	model := thread.Message{Role: thread.Assistant}
	for i := range said {
		r, ok := said[i].Result()
		if !ok {
			break
		}
		model.Parts = append(model.Parts, thread.ToolCall{ID: r.CallID, Name: r.Tool, Arguments: "{}"})
	}
	switch {
	case len(model.Parts) > 0:
		return []thread.Message{user, model}
	case said[0].Role == thread.User:
		model.Parts = []thread.Part{thread.Text{Text: "-"}}
		return []thread.Message{user, model}
	}
	return []thread.Message{user}
}

// part is a part as the API takes it: signatures in either alphabet of base64.
type part struct {
	genai.Part
	ThoughtSignature signature `json:"thoughtSignature"`
}

type signature []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *signature) UnmarshalText(text []byte) error {
	out, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(string(text)))
	*s = out
	return err
}

// Join makes one content of two of the same role; answers of tools stay alone.
func (Codec) Join(a, b *genai.Content) (*genai.Content, bool) {
	if a.Role != b.Role || answers(a) || answers(b) {
		return nil, false
	}
	return &genai.Content{Role: a.Role, Parts: append(a.Parts[:len(a.Parts):len(a.Parts)], b.Parts...)}, true
}

func answers(c *genai.Content) bool {
	return slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return p != nil && p.FunctionResponse != nil })
}
