package openai_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
	"github.com/palimpsest-ai/palimpsest/wire/wiretest"
)

func TestChatCodec(t *testing.T) {
	wiretest.TestCodec(t, openai.Chat{}, wiretest.Corpus(t, wire.Chat))
}
