package openai

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/wiretest"
)

func TestResponsesCodec(t *testing.T) {
	wiretest.TestCodec(t, Responses{}, wiretest.Corpus(t, wire.Responses))
}
