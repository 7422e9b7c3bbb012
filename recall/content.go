package recall

import (
	"github.com/palimpsest-ai/palimpsest/thread"
)

// FindContent returns what of a message has an artifact's id: the text of its result,
// its text, or FullText. It is false when none of them has. Of a content that was
// named by artifact.IDOf, has is a comparison with that; artifact.Store.Names
// gives one that knows keyed ids too.
func FindContent(m *thread.Message, has func(content string) bool) (string, bool) {
	contents := []string{m.Text(), FullText(m)}
	if r, ok := m.Result(); ok {
		contents = append([]string{r.Text()}, contents...)
	}
	for _, content := range contents {
		if has(content) {
			return content, true
		}
	}
	return "", false
}
