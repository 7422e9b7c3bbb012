package genkit

import (
	"encoding/base64"
	"encoding/json"
	"maps"

	"github.com/firebase/genkit/go/ai"
)

// Messages of Genkit in JSON of their own lose types of content and the difference
// between bytes and text, in which providers' signatures stand. These keep both.

type rawMessage struct {
	Role    ai.Role   `json:"role"`
	Content []rawPart `json:"content,omitempty"`
	rawMetadata
}

type rawPart struct {
	Kind         ai.PartKind      `json:"kind"`
	ContentType  string           `json:"contentType,omitempty"`
	Text         string           `json:"text,omitempty"`
	ToolRequest  *ai.ToolRequest  `json:"toolRequest,omitempty"`
	ToolResponse *rawResponse     `json:"toolResponse,omitempty"`
	Resource     *ai.ResourcePart `json:"resource,omitempty"`
	Custom       map[string]any   `json:"custom,omitempty"`
	rawMetadata
}

type rawResponse struct {
	Content []rawPart `json:"content,omitempty"`
	Name    string    `json:"name,omitempty"`
	Output  any       `json:"output"`
	Ref     string    `json:"ref,omitempty"`
}

type rawMetadata struct {
	Metadata map[string]any    `json:"metadata,omitempty"`
	Bytes    map[string]string `json:"bytes,omitempty"`
}

func rawOf(m *ai.Message) rawMessage {
	return rawMessage{Role: m.Role, Content: rawParts(m.Content), rawMetadata: metadataOf(m.Metadata)}
}

func rawParts(parts []*ai.Part) (out []rawPart) {
	for _, p := range parts {
		if p == nil {
			continue
		}
		r := rawPart{
			Kind: p.Kind, ContentType: p.ContentType, Text: p.Text, ToolRequest: p.ToolRequest, Resource: p.Resource, Custom: p.Custom,
			rawMetadata: metadataOf(p.Metadata),
		}
		if t := p.ToolResponse; t != nil {
			r.ToolResponse = &rawResponse{Content: rawParts(t.Content), Name: t.Name, Output: t.Output, Ref: t.Ref}
		}
		out = append(out, r)
	}
	return out
}

func metadataOf(values map[string]any) (r rawMetadata) {
	r.Metadata = values
	for k, v := range values {
		b, ok := v.([]byte)
		if !ok {
			continue
		}
		if r.Bytes == nil {
			r.Metadata, r.Bytes = maps.Clone(values), map[string]string{}
		}
		delete(r.Metadata, k)
		r.Bytes[k] = base64.StdEncoding.EncodeToString(b)
	}
	return r
}

func (r rawMessage) message() (*ai.Message, error) {
	content, err := partsOf(r.Content)
	if err != nil {
		return nil, err
	}
	values, err := r.values()
	return &ai.Message{Role: r.Role, Content: content, Metadata: values}, err
}

func partsOf(raw []rawPart) (out []*ai.Part, err error) {
	for _, r := range raw {
		p := &ai.Part{Kind: r.Kind, ContentType: r.ContentType, Text: r.Text, ToolRequest: r.ToolRequest, Resource: r.Resource, Custom: r.Custom}
		if p.Metadata, err = r.values(); err != nil {
			return nil, err
		}
		if t := r.ToolResponse; t != nil {
			p.ToolResponse = &ai.ToolResponse{Name: t.Name, Output: t.Output, Ref: t.Ref}
			if p.ToolResponse.Content, err = partsOf(t.Content); err != nil {
				return nil, err
			}
		}
		out = append(out, p)
	}
	return out, nil
}

func (r rawMetadata) values() (map[string]any, error) {
	if len(r.Metadata)+len(r.Bytes) == 0 {
		return nil, nil
	}
	out := map[string]any{}
	maps.Copy(out, r.Metadata)
	for k, text := range r.Bytes {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		out[k] = b
	}
	return out, nil
}

func read(raw string, into any) error { return json.Unmarshal([]byte(raw), into) }
