package neutral

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Prompt is what a model is asked, in neutral form.
type Prompt struct {
	// Model is the model's name.
	Model string `json:"model,omitempty"`
	// System are the blocks of instructions, in order.
	System []System `json:"system,omitempty"`
	// Tools are what the model may call.
	Tools []Tool `json:"tools,omitempty"`
	// Messages must be empty in a prompt that is the base of a step.
	Messages []Message `json:"messages,omitempty"`
	// MaxOutput is the largest answer asked for, in tokens.
	MaxOutput int `json:"max_output,omitempty"`
	// CachePoints are the positions of the messages after which a cached prefix should end,
	// the most important first; -1 stands for the end of system and tools.
	CachePoints []int `json:"cache_points,omitempty"`
}

// System is one block of instructions.
type System struct {
	// Text is the text of the block.
	Text string `json:"text"`
	// Role is system, developer or instructions.
	Role string `json:"role,omitempty"`
}

// Tool is a tool that the model may call.
type Tool struct {
	// Name is the name that the model calls.
	Name string `json:"name"`
	// Description tells the model what it is for.
	Description string `json:"description,omitempty"`
	// Schema is the JSON schema of its arguments.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// PromptOf writes a prompt in neutral form.
func PromptOf(p *prompt.Prompt) *Prompt {
	out := &Prompt{Model: p.Model, MaxOutput: p.MaxOutput}
	for _, s := range p.System {
		out.System = append(out.System, System{Text: s.Text, Role: s.Role})
	}
	for _, t := range p.Tools {
		tool := Tool{Name: t.Name, Description: t.Description}
		if rawjson.Valid(t.Schema) {
			tool.Schema = json.RawMessage(t.Schema)
		}
		out.Tools = append(out.Tools, tool)
	}
	for i := range p.Messages {
		out.Messages = append(out.Messages, MessageOf(&p.Messages[i]))
	}
	for _, c := range p.CachePoints {
		out.CachePoints = append(out.CachePoints, c.After)
	}
	return out
}

// Value checks the prompt and returns it as the base of a step. path is the JSON path of the
// prompt in its request. The error is a *FieldError.
func (p *Prompt) Value(path string) (*prompt.Prompt, error) {
	out := &prompt.Prompt{Model: p.Model, MaxOutput: p.MaxOutput}
	if len(p.Messages) > 0 || len(p.CachePoints) > 0 {
		return nil, fieldErrorf(path, "the base of a step has no messages and cache_points of its own; send new messages beside it")
	}
	if p.MaxOutput < 0 {
		return nil, fieldErrorf(path+".max_output", "want a number of tokens, 0 or more")
	}
	for i, s := range p.System {
		s.Role = cmp.Or(s.Role, string(thread.System))
		if err := oneOf(fmt.Sprintf("%s.system[%d].role", path, i), s.Role, "system", "developer", "instructions"); err != nil {
			return nil, err
		}
		out.System = append(out.System, prompt.System{Text: s.Text, Role: s.Role})
	}
	for i, t := range p.Tools {
		if t.Name == "" {
			return nil, fieldErrorf(fmt.Sprintf("%s.tools[%d].name", path, i), "a tool has a name")
		}
		out.Tools = append(out.Tools, prompt.Tool{Name: t.Name, Description: t.Description, Schema: string(t.Schema)})
	}
	return out, nil
}

// Usage is what a provider counted, in tokens.
type Usage struct {
	// Input is the whole request, cached or not.
	Input int `json:"input"`
	// CacheRead and CacheWrite are the parts of Input that were read from and
	// written to the provider's prompt cache.
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
	// Output is the answer.
	Output int `json:"output"`
}

// Edit is a change to one message of the thread. InsertBefore may go with Omit or Content.
type Edit struct {
	// MessageID is the message; in the last edit it may be empty, for the end of the thread.
	MessageID string `json:"message_id,omitempty"`
	// InsertBefore are messages to insert before it: summaries, and restored content.
	InsertBefore []Message `json:"insert_before,omitempty"`
	// Omit removes the message.
	Omit bool `json:"omit,omitempty"`
	// Content replaces the content of the message.
	Content []Part `json:"content,omitempty"`
}
