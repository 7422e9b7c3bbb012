package summarize

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// recap takes what a summary of the agent's own says, as lines that may be chosen.
func (b *builder) recap(i int, m *thread.Message, f *facts) {
	g := group{label: "the agent's earlier summary", turn: m.Turn, sources: []thread.ID{m.ID}}
	past := b.stepsAfter(i) > freshSteps
	passed := false // below a heading of what was to be done then
	for _, p := range f.recap {
		if heading(p.text) {
			passed = past && toDo(p.text)
			if len(p.idents) == 0 {
				continue // it says nothing without what stands below it
			}
		}
		if passed || len(p.text) < 4 || b.quoted(p.text) || !b.once('t', p.text) {
			continue
		}
		base := 1.2 * b.age(i) * min(1, float32(len(p.text))/60)
		if p.code || narration(p.text) {
			base *= 0.2
		}
		b.piece(secFact, &g, i, base, p)
	}
	b.groups[secFact] = append(b.groups[secFact], g)
	for _, a := range f.artifacts {
		if b.once('a', a.id) {
			b.pool.artifacts = append(b.pool.artifacts, summary.ArtifactReference{ArtifactID: a.id, Description: a.description, Turn: m.Turn, Sources: []thread.ID{m.ID}})
			b.entry(secArtifact, i, 6, nil)
		}
	}
}

// freshSteps is how many steps after a summary of the agent's own what it says of
// the present state and of the next steps still holds.
const freshSteps = 3

// stepsAfter counts the steps of the agent after the message at i, up to a few.
func (b *builder) stepsAfter(i int) int {
	n := 0
	for j := i + 1; j < len(b.messages) && n <= freshSteps; j++ {
		if b.messages[j].Role == thread.Assistant {
			n++
		}
	}
	return n
}

// heading reports whether a line of a summary is a heading of its own.
func heading(s string) bool {
	if len(s) > 80 {
		return false
	}
	digits := strings.TrimLeft(s, "0123456789")
	return s[0] == '#' || len(digits) < len(s) && strings.HasPrefix(digits, ". ") && s[len(s)-1] == ':' || strings.HasPrefix(s, "**") && strings.HasSuffix(strings.TrimSuffix(s, ":"), "**")
}

// quoted reports whether a line only repeats a message of the user's that stands
// among the requests.
func (b *builder) quoted(s string) bool {
	s = strings.Trim(unmarked(s), "\"“”' ")
	_, is := b.seen[said{'u', s}]
	return is
}
