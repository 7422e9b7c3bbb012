package strategy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// Arrived returns the positions of the outputs that no model has been sent yet
// and that are larger than limit tokens: too large to be used at once. What the
// agent reads back of content that was put aside is not among them, and neither
// is what is not text.
func Arrived(t *thread.Thread, sizes []int, limit int) []int {
	var large []int
	for i := t.Len() - 1; i >= 0 && t.At(i).Role != thread.Assistant; i-- {
		if sizes[i] <= limit {
			continue
		}
		switch tool, text := outputOf(t.At(i)); {
		case tool == rehydrate.ReadArtifact, tool == rehydrate.Recall, len(text) <= 2*limit:
		default:
			large = append(large, i)
		}
	}
	slices.Reverse(large)
	return large
}

// outputOf is the text of a tool's result, or of what a harness said in the
// user's name; empty for anything else.
func outputOf(m *thread.Message) (tool, text string) {
	if r, ok := m.Result(); ok {
		return r.Tool, r.Text()
	}
	if m.Role == thread.User && m.Kind == thread.Injected {
		return "this message", m.Text()
	}
	return "", ""
}

// intakeKeep bounds what stays of an output that is put aside on arrival: a
// quarter of what would have been let through, and at most so many tokens.
const intakeKeep = 2_000

// Intake puts outputs aside as they arrive: what stays in place of each is its
// beginning, the lines of it that report failures, its end, and a pointer. It
// costs nothing to do so before a model has seen the output, since no prompt
// that a provider caches holds it yet. Outputs that are not text stay.
func Intake(v *View, large []int, limit int) []plan.Externalization {
	var records []plan.Externalization
	keep := min(limit/4, intakeKeep)
	for _, i := range large {
		source, text := outputOf(&v.messages[i])
		record := plan.Externalization{
			Span:          v.span([]int{i}),
			ArtifactID:    v.Name(v.Thread.ID(), text),
			RehydrateHint: "read if you need the full output of " + source,
			Origin:        v.origin("intake", fmt.Sprintf("%d tokens at once, over the limit of %d", v.Sizes[i], limit), []int{i}),
		}
		record.Summary = summary.Summary{Span: record.Span, Facts: []summary.Item{v.fact(i, excerpt(strings.TrimSpace(text), keep*charsPerToken))}}
		record.TokensAfter, _ = v.cost(record, []int{i})
		if record.TokensAfter < record.TokensBefore/2 {
			records = append(records, record)
		}
	}
	return records
}

// excerpt is the beginning and the end of a text, and between them the lines
// that report failures, in at most about n bytes.
func excerpt(text string, n int) string {
	if len(text) <= n {
		return text
	}
	head, tail := clip.Boundary(text, n/3), clip.Boundary(text, len(text)-n/3)
	if i := strings.LastIndexByte(text[:head], '\n'); i > head/2 {
		head = i
	}
	if i := strings.IndexByte(text[tail:], '\n'); i >= 0 && i < (len(text)-tail)/2 {
		tail += i + 1
	}
	var b strings.Builder
	b.WriteString(text[:head])
	b.WriteString("\n")
	b.WriteString(clip.Missing(utf8.RuneCountInString(text[head:tail])))
	if lines := toolpolicy.FailureLines(text[head:tail], n/3); len(lines) > 0 {
		b.WriteString("\n[among them these lines:]\n")
		b.WriteString(strings.Join(lines, "\n"))
		b.WriteString("\n[…]")
	}
	b.WriteString("\n")
	b.WriteString(text[tail:])
	return b.String()
}
