package openai_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestChatTranslatesCorpus translates every real request of the other APIs to
// a valid chat request.
func TestChatTranslatesCorpus(t *testing.T) {
	// Requests that hold only the newest messages, because the server keeps the
	// rest: their results answer calls that are not in the body.
	continued := map[string]bool{
		"wire-samples/anthropic-sdk/runner/step.json":      true,
		"wire-samples/openai-sdk/responses-prev/step.json": true,
	}
	for _, from := range []wire.Codec{anthropic.Codec{}, gemini.Codec{}, openai.Responses{}} {
		for name, body := range wiretest.Corpus(t, from.API()) {
			p, err := from.Decode(string(body))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if p.Model == "" {
				p.Model = "in the URL" // as Gemini and Bedrock have it
			}
			for _, problem := range (openai.Chat{}).Validate([]byte(chatEncode(t, p))) {
				if problem.Advice || continued[name] && problem.Rule == "tool-pairing" {
					continue
				}
				t.Errorf("%s %s: %v", from.API(), name, problem)
			}
		}
	}
}

func TestChatGeminiSchema(t *testing.T) {
	p := &prompt.Prompt{Model: "m", Tools: []prompt.Tool{{
		Name: "f", Source: thread.Source{API: wire.Gemini, Raw: `{"name":"f"}`},
		Schema: `{"type": "OBJECT","properties":{"type":{"type":"STRING","description":"say \"type\":\"OBJECT\""}}}`,
	}}}
	want := `{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":` +
		`{"type": "object","properties":{"type":{"type":"string","description":"say \"type\":\"OBJECT\""}}}}}]}`
	if diff := cmp.Diff(want, chatEncode(t, p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
