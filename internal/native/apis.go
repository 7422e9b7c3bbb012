package native

import (
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// apisByName are the APIs with a compaction of their own, as people write them. Chat Completions
// has none, so openai means Responses.
var apisByName = map[string]string{wire.Anthropic: wire.Anthropic, wire.Responses: wire.Responses, "openai": wire.Responses}

// APIs reads names of APIs whose providers compact: anthropic, and responses or openai. It returns
// the names of package wire, sorted and each once, and skips empty ones. The error suggests what
// an unknown name may mean.
func APIs(given []string) ([]string, error) {
	var list []string
	for _, name := range given {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		api, ok := apisByName[name]
		if !ok {
			return nil, fmt.Errorf("native compaction of %.40q is not known; did you mean %s? It is known of anthropic and openai",
				name, suggest.Names(name, []string{wire.Anthropic, "openai", wire.Responses}, 1)[0])
		}
		list = append(list, api)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
