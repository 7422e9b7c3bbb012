package openai

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/wiretest"
)

func TestResponsesCodec(t *testing.T) {
	wiretest.TestCodec(t, Responses{}, wiretest.Corpus(t, wire.Responses))
}

// Every real request is one that OpenAI took.
func TestResponsesCorpusIsValid(t *testing.T) {
	for name, body := range wiretest.Corpus(t, wire.Responses) {
		for _, p := range (Responses{}).Validate(body) {
			if !p.Advice {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
}
