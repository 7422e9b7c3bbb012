package proxy

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
)

// offers reports whether the model may be offered our tools: where the client
// offers some, none of them by our names, and where the answer can be read.
func (x *exchange) offers(p *prompt.Prompt) bool {
	return !x.t.options.NoTools && len(p.Tools) > 0 && !slices.ContainsFunc(p.Tools, isOurs) && x.endpoint.dialect.readable(x.request, x.known.top)
}

func isOurs(t prompt.Tool) bool { return ours(t.Name) }

// recalling is how agents behind the proxy get back what plans removed, where the
// options do not say: they ask. What came back by itself would change the prefix
// for one prompt.
func recalling() *palimpsest.Recall {
	return &palimpsest.Recall{Rehydrate: rehydrate.Options{Disabled: true}}
}
