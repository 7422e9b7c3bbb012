//lint:file-ignore SA1019 Agents of earlier versions hold the parts that are deprecated.

package eino

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/schema"

	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// API names what the codec reads.
const API = "eino"

// Codec reads and writes messages of eino. The zero value is ready, and safe for
// concurrent use.
type Codec struct{}

var _ adapter.Codec[*schema.Message] = Codec{}

// API returns API.
func (Codec) API() string { return API }

// Decode reads a history: each of its messages is one of a thread.
func (Codec) Decode(history []*schema.Message) ([]thread.Message, error) {
	out := make([]thread.Message, len(history))
	for i, m := range history {
		if m == nil {
			return nil, fmt.Errorf("eino.Decode: message %d is nil", i)
		}
		raw, err := json.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("eino.Decode: message %d: %w", i, err)
		}
		out[i] = thread.Message{Role: roles[m.Role], Name: m.Name, Parts: parts(m), Frame: thread.NewFrame(API, string(raw), i, 1, 1)}
		switch {
		case out[i].Role == "":
			return nil, fmt.Errorf("eino.Decode: message %d: no role %q", i, m.Role)
		case len(out[i].Parts) == 0:
			out[i].Parts = []thread.Part{thread.Text{}}
		}
	}
	return out, nil
}

var roles = map[schema.RoleType]thread.Role{
	schema.System: thread.System, schema.User: thread.User, schema.Assistant: thread.Assistant, schema.Tool: thread.Tool,
}

func parts(m *schema.Message) (out []thread.Part) {
	if m.ReasoningContent != "" {
		out = append(out, thread.Reasoning{Text: m.ReasoningContent, Source: thread.Source{API: API}})
	}
	if m.Content != "" {
		out = append(out, thread.Text{Text: m.Content})
	}
	for _, p := range m.MultiContent {
		out = append(out, part(legacy, p, string(p.Type), p.Text, nil))
	}
	for _, p := range m.UserInputMultiContent {
		switch {
		case p.Image != nil:
			out = append(out, media(input, p, thread.Image, p.Image.MessagePartCommon))
		case p.Audio != nil:
			out = append(out, media(input, p, thread.Audio, p.Audio.MessagePartCommon))
		case p.Video != nil:
			out = append(out, media(input, p, thread.Video, p.Video.MessagePartCommon))
		case p.File != nil:
			out = append(out, media(input, p, thread.File, p.File.MessagePartCommon))
		default:
			out = append(out, part(input, p, string(p.Type), p.Text, nil))
		}
	}
	for _, p := range m.AssistantGenMultiContent {
		switch {
		case p.Image != nil:
			out = append(out, media(output, p, thread.Image, p.Image.MessagePartCommon))
		case p.Audio != nil:
			out = append(out, media(output, p, thread.Audio, p.Audio.MessagePartCommon))
		case p.Video != nil:
			out = append(out, media(output, p, thread.Video, p.Video.MessagePartCommon))
		default:
			out = append(out, part(output, p, string(p.Type), p.Text, p.Reasoning))
		}
	}
	for _, c := range m.ToolCalls {
		call := thread.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments, Source: source(API, c)}
		if c.Type != "function" {
			call.Type = c.Type
		}
		out = append(out, call)
	}
	if m.Role == schema.Tool {
		return []thread.Part{thread.ToolResult{CallID: m.ToolCallID, Tool: m.ToolName, Outcome: thread.Success, Content: out}}
	}
	return out
}

// The kinds of the parts in the three lists of a message.
const (
	legacy = "multi_content"
	input  = "user_input_multi_content"
	output = "assistant_output_multi_content"
)

// part is a part of one of the lists that is no media.
func part(list string, p any, kind, text string, thought *schema.MessageOutputReasoning) thread.Part {
	from := tagged(list, p)
	switch {
	case thought != nil:
		return thread.Reasoning{Text: thought.Text, Signature: thought.Signature, Source: from}
	case kind == string(schema.ChatMessagePartTypeText):
		return thread.Text{Text: text, Source: from}
	}
	return thread.Opaque{Kind: kind, Text: text, Source: from}
}

func media(list string, p any, class thread.MediaType, c schema.MessagePartCommon) thread.Part {
	out := thread.Media{Type: class, MIME: c.MIMEType, Source: tagged(list, p)}
	switch {
	case c.Base64Data != nil:
		out.Data = *c.Base64Data
	case c.URL != nil:
		out.URL = *c.URL
	}
	return out
}

// tagged is the source of a part, with the list that it stood in.
func tagged(list string, p any) thread.Source { return source(API, map[string]any{list: p}) }

func source(api string, v any) thread.Source {
	raw, err := json.Marshal(v)
	if err != nil {
		return thread.Source{} // Decode has told of the message
	}
	return thread.Source{API: api, Raw: string(raw)}
}

// Encode writes messages of a prompt. One that came from a history is read from its
// bytes.
func (Codec) Encode(messages []thread.Message) ([]*schema.Message, error) {
	out := make([]*schema.Message, len(messages))
	for i := range messages {
		m := &messages[i]
		out[i] = &schema.Message{}
		if f := m.Frame; f != nil && f.API() == API {
			if err := json.Unmarshal([]byte(f.Raw()), out[i]); err != nil {
				return nil, fmt.Errorf("eino.Encode: message %s: %w", m.ID, err)
			}
			continue
		}
		out[i].Role, out[i].Name = schema.RoleType(m.Role), m.Name
		content := m.Parts
		if r, ok := m.Result(); ok {
			out[i].ToolCallID, out[i].ToolName, content = r.CallID, r.Tool, r.Content
		}
		if err := fill(out[i], content); err != nil {
			return nil, fmt.Errorf("eino.Encode: message %s: %w", m.ID, err)
		}
	}
	return out, nil
}

// listed is a part as it stood in its list.
type listed struct {
	Input  *schema.MessageInputPart  `json:"user_input_multi_content"`
	Output *schema.MessageOutputPart `json:"assistant_output_multi_content"`
	Legacy *schema.ChatMessagePart   `json:"multi_content"`
}

// listOf is the list that a part stood in, with the part; "" for a part of no list.
func listOf(p thread.Part) (string, listed, error) {
	var l listed
	from := p.From()
	if _, call := p.(thread.ToolCall); call || from.API != API || from.Raw == "" {
		return "", l, nil
	}
	if err := json.Unmarshal([]byte(from.Raw), &l); err != nil {
		return "", l, err
	}
	switch {
	case l.Input != nil:
		return input, l, nil
	case l.Output != nil:
		return output, l, nil
	case l.Legacy != nil:
		return legacy, l, nil
	}
	return "", l, nil
}

// fill writes parts. A text that was written here goes into the list beside it, where there is
// one: clients take the list or Content, not both.
func fill(out *schema.Message, content []thread.Part) error {
	var texts, thoughts []string
	beside := ""
	for _, p := range content {
		list, _, err := listOf(p)
		if err != nil {
			return err
		}
		if list != "" {
			beside = list
			break
		}
	}
	for _, p := range content {
		list, l, err := listOf(p)
		if err != nil {
			return err
		}
		if list != "" {
			beside = list
			add(out, l)
			continue
		}
		switch p := p.(type) {
		case thread.ToolCall:
			c, err := toolCall(p)
			if err != nil {
				return err
			}
			out.ToolCalls = append(out.ToolCalls, c)
		case thread.Text:
			if beside == "" {
				texts = append(texts, p.Text)
			} else {
				add(out, text(beside, p.Text))
			}
		case thread.Reasoning:
			thoughts = append(thoughts, p.Text)
		case thread.Media, thread.Opaque:
			return fmt.Errorf("a part of %T is none of eino's", p)
		}
	}
	out.Content, out.ReasoningContent = strings.Join(texts, "\n"), strings.Join(thoughts, "\n")
	return nil
}

// text is a text as a part of a list.
func text(list, text string) (l listed) {
	switch list {
	case input:
		l.Input = &schema.MessageInputPart{Type: schema.ChatMessagePartTypeText, Text: text}
	case output:
		l.Output = &schema.MessageOutputPart{Type: schema.ChatMessagePartTypeText, Text: text}
	case legacy:
		l.Legacy = &schema.ChatMessagePart{Type: schema.ChatMessagePartTypeText, Text: text}
	}
	return l
}

func add(out *schema.Message, l listed) {
	switch {
	case l.Input != nil:
		out.UserInputMultiContent = append(out.UserInputMultiContent, *l.Input)
	case l.Output != nil:
		out.AssistantGenMultiContent = append(out.AssistantGenMultiContent, *l.Output)
	case l.Legacy != nil:
		out.MultiContent = append(out.MultiContent, *l.Legacy)
	}
}

func toolCall(call thread.ToolCall) (c schema.ToolCall, err error) {
	if call.API == API && call.Raw != "" {
		err = json.Unmarshal([]byte(call.Raw), &c)
		return c, err
	}
	c = schema.ToolCall{ID: call.ID, Type: call.Type, Function: schema.FunctionCall{Name: call.Name, Arguments: call.Arguments}}
	if c.Type == "" {
		c.Type = "function"
	}
	return c, nil
}
