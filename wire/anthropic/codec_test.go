package anthropic_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/wiretest"
)

func TestConformance(t *testing.T) {
	wiretest.TestCodec(t, anthropic.Codec{}, wiretest.Corpus(t, wire.Anthropic))
}
