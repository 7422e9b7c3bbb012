package gemini_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// The codec keeps what wire.Codec promises on every recorded request.
func TestCorpus(t *testing.T) {
	wiretest.TestCodec(t, gemini.Codec{}, wiretest.Corpus(t, wire.Gemini))
}
