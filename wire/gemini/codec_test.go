package gemini_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/wiretest"
)

// The codec keeps what wire.Codec promises on every recorded request.
func TestCorpus(t *testing.T) {
	wiretest.TestCodec(t, gemini.Codec{}, wiretest.Corpus(t, wire.Gemini))
}
