// Package genaitest has the script of adaptertest answer requests in genai's types. Only
// tests and examples import it.
package genaitest

import (
	"encoding/json"
	"fmt"

	sdk "google.golang.org/genai"

	"github.com/palimpsest-ai/palimpsest/adapter/genai"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// Answer is what the script answers to a request, and what it counted. It refuses what
// Gemini's rules refuse.
func Answer(script *adaptertest.Script, model string, config *sdk.GenerateContentConfig, contents []*sdk.Content) (*sdk.Content, *sdk.GenerateContentResponseUsageMetadata, error) {
	body, err := json.Marshal(map[string]any{"contents": contents, "systemInstruction": config.SystemInstruction})
	if err != nil {
		return nil, nil, err
	}
	for _, problem := range (gemini.Codec{}).Validate(body) {
		if !problem.Advice {
			return nil, nil, fmt.Errorf("error 400: %w", problem)
		}
	}
	messages, err := genai.Codec{}.Decode(contents)
	if err != nil {
		return nil, nil, err
	}
	base := genai.Base(model, config)
	for _, block := range base.System {
		messages = append(messages, thread.Message{Role: thread.System, Parts: []thread.Part{thread.Text{Text: block.Text}}})
	}
	var tools []string
	for _, t := range base.Tools {
		tools = append(tools, t.Name)
	}
	said, counted, err := script.Answer(messages, tools)
	if err != nil {
		return nil, nil, err
	}
	out, err := genai.Codec{}.Encode([]thread.Message{said})
	if err != nil {
		return nil, nil, err
	}
	return out[0], &sdk.GenerateContentResponseUsageMetadata{PromptTokenCount: int32(counted.Input), CandidatesTokenCount: int32(counted.Output)}, nil
}
