package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

// build makes the summary of the candidates that were taken, in the order of the thread.
func (s *selection) build() summary.Summary {
	p := s.pool
	out := summary.Summary{Span: p.Span, CurrentTask: s.task, Work: s.work, Requests: slices.Clone(s.requests), Elsewhere: p.Elsewhere}
	order := slices.Clone(s.taken)
	slices.Sort(order)
	var plain [sections][]int
	pieces := map[groupKey][]int{}
	var groups []groupKey
	for _, i := range order {
		c := &p.candidates[i]
		if c.piece < 0 {
			plain[c.section] = append(plain[c.section], c.entry)
			continue
		}
		k := groupKey{c.section, c.entry}
		if pieces[k] == nil {
			groups = append(groups, k)
		}
		pieces[k] = append(pieces[k], i)
	}
	out.Constraints, out.Stated = s.laid.divide()
	out.Unlisted = s.laid.unlisted
	out.CurrentPlan = pick(p.CurrentPlan, plain[secPlan])
	out.Files = pick(p.Files, plain[secFile])
	slices.SortStableFunc(out.Files, fileOrder)
	read := func(f summary.File) bool { return !f.Changed() }
	out.MoreFiles = p.MoreFiles + len(p.Files) - len(out.Files)
	out.MoreChanged = p.MoreChanged + len(omit(p.Files, read)) - len(omit(out.Files, read))
	out.Decisions = pick(p.Decisions, plain[secDecision])
	out.FailedAttempts = pick(p.FailedAttempts, plain[secFailed])
	out.ToolOutcomes = pick(p.ToolOutcomes, plain[secOutcome])
	out.OpenItems = pick(p.OpenItems, plain[secOpen])
	out.Artifacts = pick(p.Artifacts, plain[secArtifact])
	for _, k := range groups {
		item := s.join(pieces[k])
		switch k.section {
		case secSaid:
			out.Conclusions = append(out.Conclusions, item)
		case secReport:
			out.Reports = append(out.Reports, item)
		case secFact:
			out.Facts = append(out.Facts, item)
		default:
			out.Identifiers = append(out.Identifiers, item)
		}
	}
	told := map[string]bool{}
	for _, i := range order {
		if c := &p.candidates[i]; c.section == secSaid {
			told[clip.Brief(c.text, maxThenSaid)] = true
		}
	}
	for i := range out.FailedAttempts {
		it := &out.FailedAttempts[i]
		if why, then, ok := strings.Cut(it.Text, thenSaid); ok && told[whyFailed(then)] { // the story tells it in full
			it.Text = why + then[len(whyFailed(then)):]
		}
	}
	return out
}

// join makes one item of the chosen pieces of a group.
func (s *selection) join(chosen []int) summary.Item {
	first := &s.pool.candidates[chosen[0]]
	g := s.group(first)
	label, size := g.label, 0
	for _, i := range chosen {
		c := &s.pool.candidates[i]
		size += len(c.text) + len(gap) + 2
	}
	var b strings.Builder
	b.Grow(len(label) + 2 + size)
	if label != "" {
		b.WriteString(label)
		b.WriteString(":\n")
	}
	last := -1
	for n, i := range chosen {
		c := &s.pool.candidates[i]
		if n > 0 {
			b.WriteByte('\n')
		}
		if last >= 0 && g.apart(last, c.piece) {
			b.WriteString(gap)
		}
		text := c.text
		if head, row, two := strings.Cut(text, "\n"+gap); two && last >= 0 && strings.Contains(s.pool.candidates[chosen[n-1]].text, head+"\n") {
			text = row // the head of its table stands above
		}
		b.WriteString(text)
		last = c.piece
	}
	return summary.Item{Text: b.String(), Turn: g.turn, Sources: g.sources}
}

// apart reports whether something of the message lies between two pieces.
func (g *group) apart(a, b int) bool {
	return b != a+1 || !g.places[b].follows(g.places[a])
}

// lastParts shortens a path to its last two parts.
func lastParts(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		if j := strings.LastIndexByte(path[:i], '/'); j > 0 {
			return path[j+1:]
		}
	}
	return path
}

func pick[T any](all []T, chosen []int) []T {
	var out []T
	slices.Sort(chosen)
	for _, i := range chosen {
		out = append(out, all[i])
	}
	return out
}
