// Package apicodec finds the codec of a request API by its name.
package apicodec

import (
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Codec reads and writes the requests of an API, and reads its answers.
type Codec interface {
	wire.Codec
	wire.Answers
}

// For returns the codec of an API, nil if it is not one of the constants of package wire.
func For(api string) Codec {
	switch api {
	case wire.Anthropic:
		return anthropic.Codec{}
	case wire.Chat:
		return openai.Chat{}
	case wire.Responses:
		return openai.Responses{}
	case wire.Gemini:
		return gemini.Codec{}
	}
	return nil
}
