package openai

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func TestResponsesCodec(t *testing.T) {
	wiretest.TestCodec(t, Responses{}, wiretest.Corpus(t, wire.Responses))
}
