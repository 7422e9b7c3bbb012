package recall

import (
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Content returns what an artifact's id, made for the thread with
// artifact.IDOf, names of a message: the text of its result, its text, or
// FullText. It is false when the id names none of them.
func Content(threadID string, m *thread.Message, id string) (string, bool) {
	contents := []string{m.Text(), FullText(m)}
	if r, ok := m.Result(); ok {
		contents = append([]string{r.Text()}, contents...)
	}
	for _, content := range contents {
		if artifact.IDOf(threadID, content) == id {
			return content, true
		}
	}
	return "", false
}
