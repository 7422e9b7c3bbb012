package recall

import (
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// FullText returns everything in a message as text: its text and reasoning, its calls with
// their arguments, the text of its result, and vendor blocks, by their readable text or else
// their JSON. Media are described, without their bytes. A message of one text, or of one
// result with only text, gives exactly that text.
func FullText(m *thread.Message) string {
	if len(m.Parts) == 1 {
		return partText(m.Parts[0])
	}
	texts := make([]string, 0, len(m.Parts))
	for _, p := range m.Parts {
		if text := partText(p); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

func partText(p thread.Part) string {
	switch p := p.(type) {
	case thread.Text:
		return p.Text
	case thread.Reasoning:
		return p.Text
	case thread.Media:
		return mediaText(p)
	case thread.ToolCall:
		return p.Name + " " + p.Arguments
	case thread.ToolResult:
		return resultText(p)
	case thread.Opaque:
		if p.Text != "" {
			return p.Text
		}
		return "[" + p.Kind + "]\n" + p.From().Raw
	}
	return ""
}

// resultText joins the parts of a result as thread.ToolResult.Text does, so that a result of
// only text is the same here and in its artifact.
func resultText(r thread.ToolResult) string {
	texts := make([]string, 0, len(r.Content)+1)
	for _, p := range r.Content {
		texts = append(texts, partText(p))
	}
	text := strings.Join(texts, "\n")
	if r.Structured != "" && !strings.Contains(text, r.Structured) {
		if text != "" {
			text += "\n"
		}
		text += r.Structured
	}
	return text
}

func mediaText(m thread.Media) string {
	words := []string{string(m.Type)}
	for _, w := range []string{m.MIME, m.Name, m.URL, m.FileID} {
		if w != "" && !strings.HasPrefix(w, "data:") {
			words = append(words, w)
		}
	}
	if m.Data != "" {
		words = append(words, strconv.Itoa(len(m.Data)*3/4)+" bytes")
	}
	text := "[" + strings.Join(words, " ") + "]"
	if m.Text != "" {
		text += "\n" + m.Text
	}
	return text
}

// FindContent returns the text of a message for which has is true: that of its result, its
// own, or FullText. It is for artifact ids: has compares artifact.IDOf, or calls the
// function of artifact.Store.Names, which knows keyed ids too.
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
