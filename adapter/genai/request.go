package genai

import (
	"encoding/json"
	"slices"

	"google.golang.org/genai"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Base is what a request says around its contents. A nil config says nothing.
func Base(model string, config *genai.GenerateContentConfig) *prompt.Prompt {
	out := &prompt.Prompt{Model: model}
	if config == nil {
		return out
	}
	out.MaxOutput = int(config.MaxOutputTokens)
	if config.SystemInstruction != nil {
		for _, p := range config.SystemInstruction.Parts {
			if p != nil {
				out.System = append(out.System, prompt.System{Text: p.Text, Role: "instructions"})
			}
		}
	}
	for _, t := range config.Tools {
		if t == nil {
			continue
		}
		for _, f := range t.FunctionDeclarations {
			out.Tools = append(out.Tools, prompt.Tool{Name: f.Name, Description: f.Description, Schema: schema(f)})
		}
	}
	return out
}

func schema(f *genai.FunctionDeclaration) string {
	var takes any = f.ParametersJsonSchema
	if takes == nil && f.Parameters != nil {
		takes = f.Parameters
	}
	if takes == nil {
		return ""
	}
	raw, err := json.Marshal(takes)
	if err != nil {
		return ""
	}
	return string(raw)
}

// WithSystem returns the config with texts behind its instructions. It changes nothing
// of the one it is given.
func WithSystem(config *genai.GenerateContentConfig, texts []string) *genai.GenerateContentConfig {
	if len(texts) == 0 {
		return config
	}
	out := genai.GenerateContentConfig{}
	if config != nil {
		out = *config
	}
	says := genai.Content{Role: genai.RoleUser}
	if out.SystemInstruction != nil {
		says = *out.SystemInstruction
	}
	says.Parts = says.Parts[:len(says.Parts):len(says.Parts)]
	for _, text := range texts {
		says.Parts = append(says.Parts, &genai.Part{Text: text})
	}
	out.SystemInstruction = &says
	return &out
}

// Usage is what the provider counted; nil is not known.
func Usage(u *genai.GenerateContentResponseUsageMetadata) wire.Usage {
	if u == nil || u.PromptTokenCount == 0 {
		return wire.Usage{}
	}
	return wire.Usage{
		Input: int(u.PromptTokenCount), CacheRead: int(u.CachedContentTokenCount),
		Output: int(u.CandidatesTokenCount + u.ThoughtsTokenCount), Reasoning: int(u.ThoughtsTokenCount), Known: true,
	}
}

// Declaration describes a tool to the model.
func Declaration(t prompt.Tool) *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: t.Name, Description: t.Description, ParametersJsonSchema: json.RawMessage(t.Schema)}
}

// WithTool returns tools with one more, beside the functions that they declare.
func WithTool(tools []*genai.Tool, t prompt.Tool) []*genai.Tool {
	out := slices.Clone(tools)
	for i, has := range out {
		if has != nil && has.FunctionDeclarations != nil {
			more := *has
			more.FunctionDeclarations = append(slices.Clip(has.FunctionDeclarations), Declaration(t))
			out[i] = &more
			return out
		}
	}
	return append(out, &genai.Tool{FunctionDeclarations: []*genai.FunctionDeclaration{Declaration(t)}})
}
