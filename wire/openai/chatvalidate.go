package openai

import "github.com/palimpsest-ai/palimpsest/wire"

func (Chat) Validate(body []byte) []wire.Problem { return nil }
