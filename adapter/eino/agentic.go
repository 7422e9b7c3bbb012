package eino

import (
	"encoding/json"
	"fmt"

	"github.com/cloudwego/eino/schema"

	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// AgenticAPI names what AgenticCodec reads.
const AgenticAPI = "eino-agentic"

// AgenticCodec reads and writes messages of eino that are made of blocks. The zero value
// is ready, and safe for concurrent use.
type AgenticCodec struct{ own blocks }

var (
	_ adapter.Codec[*schema.AgenticMessage]  = AgenticCodec{}
	_ adapter.Holder[*schema.AgenticMessage] = AgenticCodec{}
)

// API returns AgenticAPI.
func (AgenticCodec) API() string { return AgenticAPI }

var agenticRoles = map[schema.AgenticRoleType]thread.Role{
	schema.AgenticRoleTypeSystem: thread.System, schema.AgenticRoleTypeUser: thread.User, schema.AgenticRoleTypeAssistant: thread.Assistant,
}

// Decode reads a history. Of a message with several results of tools each is one.
func (AgenticCodec) Decode(history []*schema.AgenticMessage) ([]thread.Message, error) {
	var out []thread.Message
	for i, m := range history {
		if m == nil {
			return nil, fmt.Errorf("eino.Decode: message %d is nil", i)
		}
		role := agenticRoles[m.Role]
		if role == "" {
			return nil, fmt.Errorf("eino.Decode: message %d: no role %q", i, m.Role)
		}
		raw, err := json.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("eino.Decode: message %d: %w", i, err)
		}
		var parts []thread.Part
		for _, b := range m.ContentBlocks {
			if b != nil {
				parts = append(parts, blockPart(b))
			}
		}
		out = append(out, adapter.Split(role, parts, AgenticAPI, string(raw), i)...)
	}
	return out, nil
}

func blockPart(b *schema.ContentBlock) thread.Part {
	if b.Type == schema.ContentBlockTypeFunctionToolResult && b.FunctionToolResult != nil {
		return result(b)
	}
	from := source(AgenticAPI, b)
	switch {
	case b.Reasoning != nil:
		return thread.Reasoning{Text: b.Reasoning.Text, Signature: b.Reasoning.Signature, Source: from}
	case b.UserInputText != nil:
		return thread.Text{Text: b.UserInputText.Text, Source: from}
	case b.AssistantGenText != nil:
		return thread.Text{Text: b.AssistantGenText.Text, Source: from}
	case b.FunctionToolCall != nil:
		c := b.FunctionToolCall
		return thread.ToolCall{ID: c.CallID, Name: c.Name, Arguments: c.Arguments, Source: from}
	case b.ToolSearchFunctionToolResult != nil:
		r := b.ToolSearchFunctionToolResult
		return thread.ToolResult{
			CallID: r.CallID, Tool: r.Name, Outcome: thread.Success, Source: from,
			Content: []thread.Part{thread.Opaque{Kind: string(schema.ContentBlockTypeToolSearchResult), Source: source(AgenticAPI, r.Result)}},
		}
	// A provider refuses the one without the other.
	case b.MCPToolApprovalRequest != nil:
		r := b.MCPToolApprovalRequest
		return thread.ToolCall{ID: r.ID, Name: r.Name, Arguments: r.Arguments, Type: string(schema.ContentBlockTypeMCPToolApprovalRequest), Source: from}
	case b.MCPToolApprovalResponse != nil:
		r := b.MCPToolApprovalResponse
		text := map[bool]string{true: "approved", false: "denied"}[r.Approve]
		if r.Reason != "" {
			text += ": " + r.Reason
		}
		return thread.ToolResult{CallID: r.ApprovalRequestID, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}, Source: from}
	}
	if m, ok := shown(b); ok {
		m.Source = from
		return m
	}
	return thread.Opaque{Kind: string(b.Type), Text: served(b), Source: from}
}

// result is what a tool gave, which is most of a history: its bytes are kept only where
// its parts do not say all of it.
func result(b *schema.ContentBlock) thread.ToolResult {
	r := b.FunctionToolResult
	out := thread.ToolResult{CallID: r.CallID, Tool: r.Name, Outcome: thread.Success}
	whole := b.Extra == nil && b.StreamingMeta == nil
	for _, c := range r.Content {
		if c == nil {
			whole = false
			continue
		}
		p := resultPart(c)
		text, plain := p.(thread.Text)
		whole = whole && plain && text.Raw == ""
		out.Content = append(out.Content, p)
	}
	if !whole {
		out.Source = source(AgenticAPI, b)
	}
	return out
}

// shown is the medium of a block.
func shown(b *schema.ContentBlock) (thread.Media, bool) {
	switch {
	case b.UserInputImage != nil:
		m := b.UserInputImage
		return thread.Media{Type: thread.Image, MIME: m.MIMEType, Detail: string(m.Detail), Data: m.Base64Data, URL: m.URL}, true
	case b.UserInputAudio != nil:
		m := b.UserInputAudio
		return thread.Media{Type: thread.Audio, MIME: m.MIMEType, Data: m.Base64Data, URL: m.URL}, true
	case b.UserInputVideo != nil:
		m := b.UserInputVideo
		return thread.Media{Type: thread.Video, MIME: m.MIMEType, Data: m.Base64Data, URL: m.URL}, true
	case b.UserInputFile != nil:
		m := b.UserInputFile
		return thread.Media{Type: thread.File, MIME: m.MIMEType, Name: m.Name, Data: m.Base64Data, URL: m.URL}, true
	case b.AssistantGenImage != nil:
		m := b.AssistantGenImage
		return thread.Media{Type: thread.Image, MIME: m.MIMEType, Data: m.Base64Data, URL: m.URL}, true
	case b.AssistantGenAudio != nil:
		m := b.AssistantGenAudio
		return thread.Media{Type: thread.Audio, MIME: m.MIMEType, Data: m.Base64Data, URL: m.URL}, true
	case b.AssistantGenVideo != nil:
		m := b.AssistantGenVideo
		return thread.Media{Type: thread.Video, MIME: m.MIMEType, Data: m.Base64Data, URL: m.URL}, true
	}
	return thread.Media{}, false
}

// served is what a person could read in what the model's server did by itself.
func served(b *schema.ContentBlock) string {
	switch {
	case b.MCPToolResult != nil:
		return b.MCPToolResult.Content
	case b.ServerToolResult != nil:
		return source(AgenticAPI, b.ServerToolResult.Content).Raw
	}
	return ""
}

// resultPart is a part of a tool's result: it has the fields of a block of the user's.
func resultPart(c *schema.FunctionToolResultContentBlock) thread.Part {
	if c.Type == schema.FunctionToolResultContentBlockTypeText && c.Text != nil && c.Extra == nil {
		return thread.Text{Text: c.Text.Text}
	}
	from := source(AgenticAPI, c)
	if c.Text != nil {
		return thread.Text{Text: c.Text.Text, Source: from}
	}
	if m, ok := shown(&schema.ContentBlock{UserInputImage: c.Image, UserInputAudio: c.Audio, UserInputVideo: c.Video, UserInputFile: c.File}); ok {
		m.Source = from
		return m
	}
	return thread.Opaque{Kind: string(c.Type), Source: from}
}

// Encode writes messages of a prompt. Each result of a tool is a message, as eino's own
// tools give it.
func (c AgenticCodec) Encode(messages []thread.Message) (out []*schema.AgenticMessage, err error) {
	for i := 0; i < len(messages); {
		m := &messages[i]
		said := &schema.AgenticMessage{}
		n := adapter.Whole(messages[i:], AgenticAPI)
		if n > 0 {
			err = json.Unmarshal([]byte(m.Frame.Raw()), said)
		} else {
			n = 1
			said.Role = agenticRole(m.Role)
			said.ContentBlocks, err = c.blocks(m)
		}
		if err != nil {
			return nil, fmt.Errorf("eino.Encode: message %s: %w", m.ID, err)
		}
		out = append(out, said)
		i += n
	}
	return out, nil
}

func agenticRole(role thread.Role) schema.AgenticRoleType {
	for theirs, ours := range agenticRoles {
		if ours == role {
			return theirs
		}
	}
	return schema.AgenticRoleTypeUser
}

func (c AgenticCodec) blocks(m *thread.Message) ([]*schema.ContentBlock, error) {
	out := make([]*schema.ContentBlock, len(m.Parts))
	for i, p := range m.Parts {
		var err error
		if out[i], err = c.block(m.Role, p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c AgenticCodec) block(role thread.Role, p thread.Part) (*schema.ContentBlock, error) {
	if b := c.own.of(p); b != nil {
		return b, nil
	}
	if from := p.From(); from.API == AgenticAPI && from.Raw != "" {
		b := &schema.ContentBlock{}
		return b, json.Unmarshal([]byte(from.Raw), b)
	}
	switch p := p.(type) {
	case thread.Text:
		if role == thread.Assistant {
			return schema.NewContentBlock(&schema.AssistantGenText{Text: p.Text}), nil
		}
		return schema.NewContentBlock(&schema.UserInputText{Text: p.Text}), nil
	case thread.Reasoning:
		return schema.NewContentBlock(&schema.Reasoning{Text: p.Text, Signature: p.Signature}), nil
	case thread.ToolCall:
		return schema.NewContentBlock(&schema.FunctionToolCall{CallID: p.ID, Name: p.Name, Arguments: p.Arguments}), nil
	case thread.ToolResult:
		r := &schema.FunctionToolResult{CallID: p.CallID, Name: p.Tool}
		for _, part := range p.Content {
			b, err := resultBlock(part)
			if err != nil {
				return nil, err
			}
			r.Content = append(r.Content, b)
		}
		return schema.NewContentBlock(r), nil
	}
	return nil, fmt.Errorf("a part of %T is none of eino's", p)
}

func resultBlock(p thread.Part) (*schema.FunctionToolResultContentBlock, error) {
	b := &schema.FunctionToolResultContentBlock{}
	if from := p.From(); from.API == AgenticAPI && from.Raw != "" {
		return b, json.Unmarshal([]byte(from.Raw), b)
	}
	text, ok := p.(thread.Text)
	if !ok {
		return nil, fmt.Errorf("a part of %T is none of a result", p)
	}
	b.Type, b.Text = schema.FunctionToolResultContentBlockTypeText, &schema.UserInputText{Text: text.Text}
	return b, nil
}
