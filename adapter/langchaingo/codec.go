package langchaingo

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// API names what the codec reads.
const API = "langchaingo"

// Codec reads and writes messages of LangChain Go. The zero value is ready, and safe
// for concurrent use.
type Codec struct{}

var _ adapter.Codec[llms.MessageContent] = Codec{}

// API returns API.
func (Codec) API() string { return API }

// raw is a message in JSON that keeps the types of its parts.
type raw struct {
	Role  llms.ChatMessageType `json:"role"`
	Parts []rawPart            `json:"parts"`
}

// rawPart is one of the parts that there are.
type rawPart struct {
	Text   *string    `json:"text,omitempty"`
	Image  *rawImage  `json:"image,omitempty"`
	Binary *rawBinary `json:"binary,omitempty"`
	Call   *rawCall   `json:"call,omitempty"`
	Result *rawResult `json:"result,omitempty"`
	Cached *rawPart   `json:"cached,omitempty"`
	Mark   *rawMark   `json:"mark,omitempty"`
}

// The framework's types without its JSON, which writes them in other forms.
type (
	rawImage  struct{ URL, Detail string }
	rawBinary struct {
		MIMEType string
		Data     []byte
	}
	rawCall struct {
		ID, Type string
		Function *llms.FunctionCall
	}
	rawResult struct{ ToolCallID, Name, Content string }
	rawMark   struct {
		Type     string
		Duration time.Duration
	}
)

func rawOf(p llms.ContentPart) (rawPart, error) {
	switch p := p.(type) {
	case llms.TextContent:
		return rawPart{Text: &p.Text}, nil
	case llms.ImageURLContent:
		return rawPart{Image: &rawImage{p.URL, p.Detail}}, nil
	case llms.BinaryContent:
		return rawPart{Binary: &rawBinary{p.MIMEType, p.Data}}, nil
	case llms.ToolCall:
		return rawPart{Call: &rawCall{p.ID, p.Type, p.FunctionCall}}, nil
	case llms.ToolCallResponse:
		return rawPart{Result: &rawResult{p.ToolCallID, p.Name, p.Content}}, nil
	case llms.CachedContent:
		inner, err := rawOf(p.ContentPart)
		out := rawPart{Cached: &inner}
		if p.CacheControl != nil {
			out.Mark = &rawMark{p.CacheControl.Type, p.CacheControl.Duration}
		}
		return out, err
	}
	return rawPart{}, fmt.Errorf("a part of type %T is not known", p)
}

func (r rawPart) part() llms.ContentPart {
	switch {
	case r.Text != nil:
		return llms.TextContent{Text: *r.Text}
	case r.Image != nil:
		return llms.ImageURLContent{URL: r.Image.URL, Detail: r.Image.Detail}
	case r.Binary != nil:
		return llms.BinaryContent{MIMEType: r.Binary.MIMEType, Data: r.Binary.Data}
	case r.Call != nil:
		return llms.ToolCall{ID: r.Call.ID, Type: r.Call.Type, FunctionCall: r.Call.Function}
	case r.Result != nil:
		return llms.ToolCallResponse{ToolCallID: r.Result.ToolCallID, Name: r.Result.Name, Content: r.Result.Content}
	case r.Cached != nil:
		out := llms.CachedContent{ContentPart: r.Cached.part()}
		if r.Mark != nil {
			out.CacheControl = &llms.CacheControl{Type: r.Mark.Type, Duration: r.Mark.Duration}
		}
		return out
	}
	return llms.TextContent{}
}

// portable is what everybody understands of the part.
func (r rawPart) portable(from thread.Source) thread.Part {
	switch {
	case r.Image != nil:
		return thread.Media{Type: thread.Image, URL: r.Image.URL, Detail: r.Image.Detail, Source: from}
	case r.Binary != nil:
		return thread.Media{Type: class(r.Binary.MIMEType), MIME: r.Binary.MIMEType, Data: base64.StdEncoding.EncodeToString(r.Binary.Data), Source: from}
	case r.Call != nil:
		call := thread.ToolCall{ID: r.Call.ID, Source: from}
		if r.Call.Type != "function" {
			call.Type = r.Call.Type
		}
		if f := r.Call.Function; f != nil {
			call.Name, call.Arguments = f.Name, f.Arguments
		}
		return call
	case r.Result != nil:
		return thread.ToolResult{
			CallID: r.Result.ToolCallID, Tool: r.Result.Name, Outcome: thread.Success,
			Content: []thread.Part{thread.Text{Text: r.Result.Content}}, Source: from,
		}
	case r.Cached != nil:
		return r.Cached.portable(from)
	case r.Text != nil:
		return thread.Text{Text: *r.Text, Source: from}
	}
	return thread.Text{Source: from}
}

// class is what a file of a type is to a model.
func class(mime string) thread.MediaType {
	switch of, _, ok := strings.Cut(mime, "/"); thread.MediaType(of) {
	case thread.Image, thread.Audio, thread.Video:
		if ok {
			return thread.MediaType(of)
		}
	}
	return thread.File
}

var roles = map[llms.ChatMessageType]thread.Role{
	llms.ChatMessageTypeSystem: thread.System, llms.ChatMessageTypeHuman: thread.User, llms.ChatMessageTypeGeneric: thread.User,
	llms.ChatMessageTypeAI: thread.Assistant, llms.ChatMessageTypeTool: thread.Tool, llms.ChatMessageTypeFunction: thread.Tool,
}

// Decode reads a history. Of a message with several answers of tools each is one.
func (Codec) Decode(history []llms.MessageContent) ([]thread.Message, error) {
	var out []thread.Message
	for i, m := range history {
		role := roles[m.Role]
		if role == "" {
			return nil, fmt.Errorf("langchaingo.Decode: message %d: no role %q", i, m.Role)
		}
		whole := raw{Role: m.Role}
		var parts []thread.Part
		for _, p := range m.Parts {
			r, err := rawOf(p)
			if err != nil {
				return nil, fmt.Errorf("langchaingo.Decode: message %d: %w", i, err)
			}
			text, err := json.Marshal(r)
			if err != nil {
				return nil, fmt.Errorf("langchaingo.Decode: message %d: %w", i, err)
			}
			whole.Parts = append(whole.Parts, r)
			parts = append(parts, r.portable(thread.Source{API: API, Raw: string(text)}))
		}
		text, err := json.Marshal(whole)
		if err != nil {
			return nil, fmt.Errorf("langchaingo.Decode: message %d: %w", i, err)
		}
		out = append(out, adapter.Split(role, parts, API, string(text), i)...)
	}
	return out, nil
}

// Encode writes messages of a prompt. Each answer of a tool is a message of its own,
// unless it comes from a history as it was.
func (Codec) Encode(messages []thread.Message) (out []llms.MessageContent, err error) {
	for i := 0; i < len(messages); {
		m := &messages[i]
		if n := adapter.Whole(messages[i:], API); n > 0 {
			var r raw
			if err := json.Unmarshal([]byte(m.Frame.Raw()), &r); err != nil {
				return nil, fmt.Errorf("langchaingo.Encode: message %s: %w", m.ID, err)
			}
			said := llms.MessageContent{Role: r.Role}
			for _, p := range r.Parts {
				said.Parts = append(said.Parts, p.part())
			}
			out = append(out, said)
			i += n
			continue
		}
		said := llms.MessageContent{Role: back[m.Role]}
		for _, p := range m.Parts {
			part, err := written(p)
			if err != nil {
				return nil, fmt.Errorf("langchaingo.Encode: message %s: %w", m.ID, err)
			}
			said.Parts = append(said.Parts, part)
		}
		out = append(out, said)
		i++
	}
	return out, nil
}

var back = map[thread.Role]llms.ChatMessageType{
	thread.System: llms.ChatMessageTypeSystem, thread.User: llms.ChatMessageTypeHuman,
	thread.Assistant: llms.ChatMessageTypeAI, thread.Tool: llms.ChatMessageTypeTool,
}

func written(p thread.Part) (llms.ContentPart, error) {
	if from := p.From(); from.API == API && from.Raw != "" {
		var r rawPart
		if err := json.Unmarshal([]byte(from.Raw), &r); err != nil {
			return nil, err
		}
		return r.part(), nil
	}
	switch p := p.(type) {
	case thread.Text:
		return llms.TextContent{Text: p.Text}, nil
	case thread.ToolCall:
		kind := p.Type
		if kind == "" {
			kind = "function"
		}
		return llms.ToolCall{ID: p.ID, Type: kind, FunctionCall: &llms.FunctionCall{Name: p.Name, Arguments: p.Arguments}}, nil
	case thread.ToolResult:
		return llms.ToolCallResponse{ToolCallID: p.CallID, Name: p.Tool, Content: p.Text()}, nil
	}
	return nil, fmt.Errorf("a part of %T is none of LangChain's", p)
}
