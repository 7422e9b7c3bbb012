package policy

import (
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// How much of a message the summarizer of seed B reads, in UTF-16 code units
// (B7).
const (
	// hugeResult bounds the text of a result before anything is done with it: no
	// more can ever show, and no megabyte is quoted to keep 500 characters.
	hugeResult   = 10_000
	resultHead   = 500
	messageHead  = 2_000
	truncatedEnd = "\n[...truncated...]"
	betweenTurns = "\n\n---\n\n"
)

// transcript is B7, for the seed's summarizer: numbered from 0, roles in capitals,
// parts on lines of their own, calls and results in brackets. The three points
// behind a result stand there whether it was cut or not, as in the seed.
// Reasoning and media leave nothing.
func transcript(entries []entry) string {
	var b strings.Builder
	for n := range entries {
		m := &entries[n].Message
		if n > 0 {
			b.WriteString(betweenTurns)
		}
		text, whole := headUnits(content(m), messageHead)
		if !whole {
			text += truncatedEnd
		}
		fmt.Fprintf(&b, "[%d] %s:\n%s", n, strings.ToUpper(string(m.Role)), text)
	}
	return b.String()
}

func content(m *thread.Message) string {
	var lines []string
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Text:
			lines = append(lines, part.Text)
		case thread.Opaque:
			if part.Text != "" {
				lines = append(lines, part.Text)
			}
		case thread.ToolCall:
			lines = append(lines, fmt.Sprintf("[Tool: %s(%s)]", part.Name, stringify(part.Arguments)))
		case thread.ToolResult:
			value := stringify(part.Structured)
			if part.Structured == "" {
				text, _ := headUnits(part.Text(), hugeResult)
				value = quoted(text)
			}
			head, _ := headUnits(value, resultHead)
			lines = append(lines, fmt.Sprintf("[Result: %s...]", head))
		}
	}
	return strings.Join(lines, "\n")
}
