package anthropic_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/wiretest"
)

func TestConformance(t *testing.T) {
	wiretest.TestCodec(t, anthropic.Codec{}, wiretest.Corpus(t, wire.Anthropic))
}

// Every real request is valid. The exceptions are bodies for count_tokens,
// which the API takes without max_tokens.
func TestRealRequestsAreValid(t *testing.T) {
	for name, body := range wiretest.Corpus(t, wire.Anthropic) {
		counting := strings.Contains(name, "count-tokens") || strings.Contains(name, "count_tokens")
		for _, p := range (anthropic.Codec{}).Validate(body) {
			if !p.Advice && !(counting && p.Path == "max_tokens") {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
}
