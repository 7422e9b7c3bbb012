package strategy

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Unseen returns the positions of the outputs after the model's last answer. A result that
// the model has asked for must not be hidden before it was read.
func Unseen(t *thread.Thread) []int {
	var unseen []int
	for i := t.Len() - 1; i >= 0 && t.At(i).Role != thread.Assistant; i-- {
		if slices.ContainsFunc(contentOf(t.At(i)), saysSomething) {
			unseen = append(unseen, i)
		}
	}
	slices.Reverse(unseen)
	return unseen
}

// saysSomething reports whether a part of an output holds anything for the model to read.
func saysSomething(p thread.Part) bool {
	text, whole := textOf(p)
	return text != "" || !whole
}

// maxArrivalStub is the most that stays of an output that is externalized on arrival, in
// tokens; in a small room it is the share oversizeStub.
const maxArrivalStub = 4_000

// ExternalizeLarge externalizes the outputs at these positions that take more than a fifth
// of the room, and of which less than half would stay, before anything else is decided. In
// place of each come its beginning, the lines of it that report failures, its end, and a
// pointer.
func (v *View) ExternalizeLarge(at []int) {
	keep := min(v.part(oversizeStub), maxArrivalStub)
	for _, i := range at {
		if v.cover[i] >= 0 || !v.Shrinkable(i) || v.Sizes[i] <= max(v.part(oversize), 2*keep) || !v.storable(i) {
			continue
		}
		record, text := v.external(i, "intake", clip.Number(v.Sizes[i])+" tokens at once are more than fit")
		record.Summary = summary.Summary{Span: record.Span, Facts: []summary.Item{v.fact(i, excerpt(strings.TrimSpace(text), keep*bytesPerToken))}}
		record.TokensAfter, _ = v.cost(record, []int{i})
		if record.TokensAfter < record.TokensBefore/2 {
			v.apply(record)
		}
	}
	v.inForce = len(v.records)
}

// excerpt is the beginning and the end of a text, and between them the lines that report
// failures, in about n bytes.
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
	b.WriteString(clip.OmittedNote(utf8.RuneCountInString(text[head:tail])))
	if lines := toolclass.FailureLines(text[head:tail], n/3); len(lines) > 0 {
		b.WriteString("\n[among them these lines:]\n")
		b.WriteString(strings.Join(lines, "\n"))
		b.WriteString("\n[…]")
	}
	b.WriteString("\n")
	b.WriteString(text[tail:])
	return b.String()
}
