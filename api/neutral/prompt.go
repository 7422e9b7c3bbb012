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
	// Messages are not used where a prompt is the base of a step.
	Messages []Message `json:"messages,omitempty"`
	// MaxOutput is the largest answer asked for, in tokens.
	MaxOutput int `json:"max_output,omitempty"`
	// CachePoints are the positions of the messages behind which a provider
	// should end a cached prefix; -1 stands for the end of system and tools.
	CachePoints []int `json:"cache_points,omitempty"`
}

// System is one block of instructions.
type System struct {
	// Text is what the block says.
	Text string `json:"text"`
	// Role is system, developer or instructions, as the provider was given it.
	Role string `json:"role,omitempty"`
}

// Tool is a tool that the model may call.
type Tool struct {
	// Name is what the model calls it by.
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

// Value makes the base of a step of the neutral form. path is where the prompt
// stands in its request. The error is a *FieldError.
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

// Edit is what is done with one message of the thread. InsertBefore may stand beside
// one of the others.
type Edit struct {
	// MessageID is the message; empty, in the last edit, is the end of them all.
	MessageID string `json:"message_id,omitempty"`
	// InsertBefore are messages that come before it: summaries, and what is shown again.
	InsertBefore []Message `json:"insert_before,omitempty"`
	// Omit: the message is left out.
	Omit bool `json:"omit,omitempty"`
	// Content stands in place of what the message says.
	Content []Part `json:"content,omitempty"`
}
