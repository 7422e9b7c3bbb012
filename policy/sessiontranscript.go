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

// cuts say how much of a message a summarizer reads; 0 is all of it.
type cuts struct{ result, message int }

// sessionCuts are those of seed B.
var sessionCuts = cuts{resultHead, messageHead}

// transcript is B7, for the seed's summarizer: numbered from 0, roles in capitals,
// parts on lines of their own, calls and results in brackets. Where results are
// cut the three points stand behind each, whether it was cut or not, as in the
// seed. Reasoning and media leave nothing.
func transcript(entries []entry, cut cuts) string {
	var b strings.Builder
	for n := range entries {
		m := &entries[n].Message
		if n > 0 {
			b.WriteString(betweenTurns)
		}
		text := content(m, cut.result)
		if cut.message > 0 {
			head, whole := headUnits(text, cut.message)
			if text = head; !whole {
				text += truncatedEnd
			}
		}
		fmt.Fprintf(&b, "[%d] %s:\n%s", n, strings.ToUpper(string(m.Role)), text)
	}
	return b.String()
}

func content(m *thread.Message, resultCut int) string {
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
			lines = append(lines, "[Result: "+resultJSON(part, resultCut)+"]")
		}
	}
	return strings.Join(lines, "\n")
}

// resultJSON is a result as JSON.stringify writes it, or its beginning.
func resultJSON(r thread.ToolResult, limit int) string {
	if limit == 0 {
		if r.Structured != "" {
			return stringify(r.Structured)
		}
		return quoted(r.Text())
	}
	value := stringify(r.Structured)
	if r.Structured == "" {
		text, _ := headUnits(r.Text(), hugeResult)
		value = quoted(text)
	}
	head, _ := headUnits(value, limit)
	return head + "..."
}
