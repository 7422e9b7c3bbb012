package genkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/firebase/genkit/go/ai"

	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// API names what the codec reads.
const API = "genkit"

// Codec reads and writes messages of Genkit. The zero value is ready, and safe for
// concurrent use.
type Codec struct{}

var (
	_ adapter.Codec[*ai.Message]  = Codec{}
	_ adapter.Joiner[*ai.Message] = Codec{}
)

// API returns API.
func (Codec) API() string { return API }

var roles = map[ai.Role]thread.Role{
	ai.RoleSystem: thread.System, ai.RoleUser: thread.User, ai.RoleModel: thread.Assistant, ai.RoleTool: thread.Tool,
}

// Decode reads a history. Of a message with several answers of tools each is one.
func (Codec) Decode(history []*ai.Message) ([]thread.Message, error) {
	var out []thread.Message
	var calls open
	for i, m := range history {
		if m == nil {
			return nil, fmt.Errorf("genkit.Decode: message %d is nil", i)
		}
		role := roles[m.Role]
		if role == "" {
			return nil, fmt.Errorf("genkit.Decode: message %d: no role %q", i, m.Role)
		}
		whole := rawOf(m)
		raw, err := json.Marshal(whole)
		if err != nil {
			return nil, fmt.Errorf("genkit.Decode: message %d: %w", i, err)
		}
		var parts []thread.Part
		for j := range whole.Content {
			p, err := calls.part(&whole.Content[j])
			if err != nil {
				return nil, fmt.Errorf("genkit.Decode: message %d: %w", i, err)
			}
			parts = append(parts, p)
		}
		out = append(out, adapter.Split(role, parts, API, string(raw), i)...)
	}
	return out, nil
}

// open are the calls without a reference that wait for an answer: it belongs to the
// first of its name.
type open struct {
	n       int
	waiting []thread.ToolCall
}

func (o *open) part(r *rawPart) (thread.Part, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	from := thread.Source{API: API, Raw: string(raw)}
	switch {
	case r.Kind == ai.PartText:
		return thread.Text{Text: r.Text, Source: from}, nil
	case r.Kind == ai.PartReasoning:
		return thread.Reasoning{Text: r.Text, Signature: r.Bytes["signature"], Source: from}, nil
	case r.Kind == ai.PartMedia:
		return media(r, from), nil
	case r.Kind == ai.PartToolRequest && r.ToolRequest != nil:
		arguments, err := json.Marshal(r.ToolRequest.Input)
		if err != nil {
			return nil, err
		}
		call := thread.ToolCall{ID: r.ToolRequest.Ref, Name: r.ToolRequest.Name, Arguments: string(arguments), Signature: r.Bytes["signature"], Source: from}
		if call.ID == "" {
			call.ID = thread.LocalID(o.n)
			o.n++
			o.waiting = append(o.waiting, call)
		}
		return call, nil
	case r.Kind == ai.PartToolResponse && r.ToolResponse != nil:
		return o.result(r.ToolResponse, from)
	}
	return thread.Opaque{Kind: kinds[r.Kind], Text: r.Text, Source: from}, nil
}

var kinds = map[ai.PartKind]string{ai.PartData: "data", ai.PartCustom: "custom", ai.PartResource: "resource"}

func media(r *rawPart, from thread.Source) thread.Media {
	p := ai.Part{Kind: r.Kind, ContentType: r.ContentType, Text: r.Text}
	out := thread.Media{Type: thread.File, MIME: r.ContentType, Source: from}
	switch {
	case p.IsImage():
		out.Type = thread.Image
	case p.IsAudio():
		out.Type = thread.Audio
	case p.IsVideo():
		out.Type = thread.Video
	}
	if head, data, ok := strings.Cut(r.Text, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		out.Data = data
		if out.MIME == "" {
			out.MIME = strings.TrimPrefix(head, "data:")
		}
	} else {
		out.URL = r.Text
	}
	return out
}

func (o *open) result(r *rawResponse, from thread.Source) (thread.Part, error) {
	out := thread.ToolResult{CallID: r.Ref, Tool: r.Name, Outcome: thread.Success, Source: from}
	if out.CallID == "" {
		for i, call := range o.waiting {
			if call.Name == r.Name {
				out.CallID = call.ID
				o.waiting = append(o.waiting[:i:i], o.waiting[i+1:]...)
				break
			}
		}
	}
	text, ok := r.Output.(string)
	if !ok && r.Output != nil {
		raw, err := json.Marshal(r.Output)
		if err != nil {
			return nil, err
		}
		text = string(raw)
		out.Structured = text
	}
	out.Content = []thread.Part{thread.Text{Text: text}}
	for i := range r.Content {
		p, err := (&open{}).part(&r.Content[i])
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, p)
	}
	return out, nil
}

// Encode writes messages of a prompt. Answers of tools that follow each other become
// one message.
func (Codec) Encode(messages []thread.Message) (out []*ai.Message, err error) {
	for i := 0; i < len(messages); {
		m := &messages[i]
		if n := adapter.Whole(messages[i:], API); n > 0 {
			var raw rawMessage
			if err := read(m.Frame.Raw(), &raw); err != nil {
				return nil, fmt.Errorf("genkit.Encode: message %s: %w", m.ID, err)
			}
			said, err := raw.message()
			if err != nil {
				return nil, fmt.Errorf("genkit.Encode: message %s: %w", m.ID, err)
			}
			out = append(out, said)
			i += n
			continue
		}
		said := &ai.Message{Role: back(m.Role)}
		for ; i < len(messages) && (&messages[i] == m || m.Role == thread.Tool && messages[i].Role == thread.Tool && adapter.Whole(messages[i:], API) == 0); i++ {
			for _, p := range messages[i].Parts {
				part, err := written(p)
				if err != nil {
					return nil, fmt.Errorf("genkit.Encode: message %s: %w", messages[i].ID, err)
				}
				said.Content = append(said.Content, part)
			}
		}
		out = append(out, said)
	}
	return out, nil
}

func back(role thread.Role) ai.Role {
	for theirs, ours := range roles {
		if ours == role {
			return theirs
		}
	}
	return ai.RoleUser
}

func written(p thread.Part) (*ai.Part, error) {
	if from := p.From(); from.API == API && from.Raw != "" {
		var r rawPart
		if err := read(from.Raw, &r); err != nil {
			return nil, err
		}
		parts, err := partsOf([]rawPart{r})
		if err != nil {
			return nil, err
		}
		return parts[0], nil
	}
	switch p := p.(type) {
	case thread.Text:
		return ai.NewTextPart(p.Text), nil
	case thread.ToolCall:
		var input any
		if err := read(p.Arguments, &input); err != nil {
			input = map[string]any{"input": p.Arguments}
		}
		return ai.NewToolRequestPart(&ai.ToolRequest{Name: p.Name, Ref: reference(p.ID), Input: input}), nil
	case thread.ToolResult:
		return ai.NewToolResponsePart(&ai.ToolResponse{Name: p.Tool, Ref: reference(p.CallID), Output: p.Text()}), nil
	}
	return nil, fmt.Errorf("a part of %T is none of Genkit's", p)
}

func reference(id string) string {
	if thread.IsLocalID(id) {
		return ""
	}
	return id
}

// Join makes one message of two of the same role; answers of tools stay alone. Where their
// metadata differs, the later counts: a cache mark is about what ends there.
func (Codec) Join(a, b *ai.Message) (*ai.Message, bool) {
	if a.Role != b.Role || a.Role == ai.RoleTool {
		return nil, false
	}
	metadata := a.Metadata
	if len(b.Metadata) > 0 {
		metadata = maps.Clone(b.Metadata)
		for name, value := range a.Metadata {
			if _, both := metadata[name]; !both {
				metadata[name] = value
			}
		}
	}
	return &ai.Message{Role: a.Role, Metadata: metadata, Content: append(a.Content[:len(a.Content):len(a.Content)], b.Content...)}, true
}
