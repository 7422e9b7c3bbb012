package token

import "github.com/palimpsest-ai/palimpsest/thread"

type imageFormula struct{}

var imageFormulas = map[string]imageFormula{"tiles-85-170": {}, "claude-1568": {}, "claude-2576": {}, "gemini-768": {}, "fixed-1600": {}}

func (c *Counter) media(m thread.Media) int { return c.Text(m.Text) }
