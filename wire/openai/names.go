package openai

import "github.com/palimpsest-ai/palimpsest/wire/internal/codec"

// maxName is the length limit of a function's name, in characters.
const maxName = 64

// fittedName is the name of a function in the characters and the length that OpenAI
// allows.
func fittedName(name string) string { return codec.FitPlainName(name, maxName) }
