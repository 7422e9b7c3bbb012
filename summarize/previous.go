package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// previous adds the items of the summary that this one replaces. Their position is -1: older
// than the whole span.
func (b *builder) previous(s *summary.Summary) {
	b.oldTask = s.CurrentTask
	b.Requests = append(b.Requests, s.Requests...)
	for _, it := range s.Requests {
		b.requests = append(b.requests, request{idents: mentions(nil, it.Text), answers: numbered.MatchString(it.Text)})
		b.unseen(seenRequest, it.Text+it.Asked)
	}
	b.CurrentPlan, b.before = slices.Clone(s.CurrentPlan), s.CurrentPlan
	b.MoreFiles, b.MoreChanged = s.MoreFiles, s.MoreChanged // had no room before
	for _, f := range s.Files {
		b.fileAt[f.Path] = len(b.Files)
		f.Operations, f.Sources = slices.Clone(f.Operations), slices.Clone(f.Sources)
		b.Files = append(b.Files, f)
	}
	carry(b, &b.Decisions, s.Decisions, secDecision, seenDecision, 3, true, func(d summary.Decision) string { return d.Decision })
	for _, it := range s.FailedAttempts {
		if b.unseen(seenFailure, whyFailed(it.Text)) {
			call, why, _ := strings.Cut(whyFailed(it.Text), " => ")
			tool, input, ok := strings.Cut(call, " ")
			if ok && !strings.Contains(input, "…") && !strings.Contains(it.Text, thenWorked) && !strings.HasPrefix(why, "the user ") {
				b.remember(tool + "\x00" + input)
			}
			b.FailedAttempts = append(b.FailedAttempts, it)
			b.entry(secFailed, -1, 1.5, mentions(nil, it.Text))
		}
	}
	for _, o := range s.ToolOutcomes {
		b.outcomes[outcomeKey{o.Tool, o.Input}] = len(b.ToolOutcomes)
		b.ToolOutcomes = append(b.ToolOutcomes, o)
		b.latest = append(b.latest, len(b.candidates))
		b.entry(secOutcome, -1, 0.6, mentions(nil, o.Input))
	}
	carry(b, &b.OpenItems, s.OpenItems, secOpen, seenOpenItem, 1.5, false, func(o summary.OpenItem) string { return o.Description })
	carry(b, &b.Artifacts, s.Artifacts, secArtifact, seenArtifact, 6, false, func(a summary.ArtifactReference) string { return a.ArtifactID })
	b.previousGroups(secFact, s.Facts, 1)
	b.previousWords(s.Conclusions)
	b.previousGroups(secReport, s.Reports, reportWorth)
	b.previousGroups(secSnippet, s.Identifiers, 0.2)
}

// carry adds plain entries that are new, and a candidate for each; with named, identifiers
// in them count.
func carry[T any](b *builder, into *[]T, list []T, sec section, kind seenKind, base float32, named bool, text func(T) string) {
	for _, e := range list {
		if !b.unseen(kind, text(e)) {
			continue
		}
		*into = append(*into, e)
		var idents []mention
		if named {
			idents = mentions(nil, text(e))
		}
		b.entry(sec, -1, base, idents)
	}
}

// previousWords splits the assistant's words into pieces again.
func (b *builder) previousWords(items []summary.Item) {
	for _, it := range items {
		g := group{turn: it.Turn, sources: it.Sources}
		line := 0
		for _, run := range strings.Split(it.Text, "\n"+gap) {
			for _, p := range paragraphs(nil, run) {
				if heading(p.text) || !b.unseen(seenWords, p.text) {
					continue
				}
				p.line += line
				base := wordsOnTheWay * min(1, float32(len(p.text))/fullWords)
				b.piece(secSaid, &g, -1, base, p).terms = b.terms.add(-1, p.terms)
			}
			line += strings.Count(run, "\n") + 2 // a gap follows
		}
		b.groups[secSaid] = append(b.groups[secSaid], g)
	}
}

// previousGroups splits items that were made of lines into lines again.
func (b *builder) previousGroups(sec section, items []summary.Item, base float32) {
	for _, it := range items {
		g := group{turn: it.Turn, sources: it.Sources}
		lines := strings.Split(it.Text, "\n")
		if len(lines) > 1 && strings.HasSuffix(lines[0], ":") {
			g.label = strings.TrimSuffix(lines[0], ":")
			lines = lines[1:]
		}
		at := 0
		for _, line := range lines {
			line, apart := strings.CutPrefix(line, gap)
			if at++; apart {
				at++
			}
			if line == "" || !b.unseen(seenLine, line) {
				continue
			}
			b.piece(sec, &g, -1, base, piece{text: line, idents: mentions(nil, line), place: place{line: at}})
		}
		b.groups[sec] = append(b.groups[sec], g)
	}
}

// artifactMention is a pointer to externalized content, as our renderer writes it.
type artifactMention struct{ id, description string }

const artifactMark = "[Externalized Content - artifact:"

// mentionedArtifacts finds the pointers in a text.
func mentionedArtifacts(s string) []artifactMention {
	var out []artifactMention
	for len(out) < 32 {
		_, rest, ok := strings.Cut(s, artifactMark)
		if !ok {
			break
		}
		s = rest
		id, _, ok := strings.Cut(rest[:min(len(rest), 200)], "]")
		if ok && !strings.ContainsAny(id, " \n\t\"") {
			about := strings.TrimPrefix(strings.TrimLeft(rest[len(id)+1:], "\n "), "Summary: ")
			line, _, _ := strings.Cut(about, "\n")
			out = append(out, artifactMention{id, clip.Brief(line, maxLine)})
		}
	}
	return out
}

// withoutOutdated returns s without the facts, decisions, steps, open items and failed
// attempts that have one of the texts. The user's words always stay. Nil stays nil.
func withoutOutdated(s *summary.Summary, texts []string) *summary.Summary {
	if s == nil || len(texts) == 0 {
		return s
	}
	gone := map[string]bool{}
	for _, t := range texts {
		gone[normalized(t)] = true
	}
	return without(s, func(text string, _ []thread.ID) bool { return gone[normalized(text)] })
}

// without returns s without some of the items of the kinds that a model writes.
func without(s *summary.Summary, gone func(text string, sources []thread.ID) bool) *summary.Summary {
	out := *s
	item := func(it summary.Item) bool { return gone(it.Text, it.Sources) }
	out.Facts, out.FailedAttempts = omit(s.Facts, item), omit(s.FailedAttempts, item)
	out.Decisions = omit(s.Decisions, func(d summary.Decision) bool { return gone(d.Decision, d.Sources) })
	out.CurrentPlan = omit(s.CurrentPlan, func(x summary.Step) bool { return gone(x.Text, x.Sources) })
	out.OpenItems = omit(s.OpenItems, func(o summary.OpenItem) bool { return gone(o.Description, o.Sources) })
	return &out
}

func omit[T any](list []T, gone func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), gone)
}

// normalized normalizes a text for comparison: a model that repeats it may drop the full stop.
func normalized(s string) string { return strings.TrimRight(oneLine(s), ".") }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// recap adds a summary that the agent itself wrote, as its words, unless the log holds what it sums up: the log is
// more exact and says how it went on.
func (b *builder) recap(i int, m *thread.Message, f *facts) {
	label := "the agent's earlier summary"
	if ownformat.IsSummary(m) {
		label = ownformat.EarlierSummary
	}
	if !b.recaps[m.ID] {
		b.document(i, m, label, f.recap)
	}
	for _, a := range f.artifacts {
		if b.unseen(seenArtifact, a.id) {
			b.Artifacts = append(b.Artifacts, summary.ArtifactReference{ArtifactID: a.id, Description: a.description, Turn: m.Turn, Sources: []thread.ID{m.ID}})
			b.entry(secArtifact, i, 6, nil)
		}
	}
}

// ownTold is what a summary of ours tells, without its labels and the lines that are only its frame. Where those stood
// there is a gap.
func ownTold(pieces []piece) []piece {
	out, skipped := pieces[:0], 0
	for _, p := range pieces {
		var lines []string
		between := false
		for line := range strings.SplitSeq(p.text, "\n") {
			told, apart := ownformat.Told(line, gap)
			if between = between || apart; told == "" {
				continue
			}
			if between && len(lines) > 0 {
				told = gap + told
			} else if between {
				skipped++
			}
			lines, between = append(lines, told), false
		}
		if between { // a heading without its text, or neither
			skipped++
			continue
		}
		p.text, p.line = strings.Join(lines, "\n"), p.line+skipped
		out = append(out, p)
	}
	return out
}

// loggedRecaps finds the agent's own summaries; the value says whether the log holds the messages that they
// sum up: several, which hold most of the names in the summary. The older messages of a file may be gone.
func loggedRecaps(log []thread.Message, of func(*thread.Message) *facts) map[thread.ID]bool {
	all, before := map[thread.ID]bool{}, map[string]bool{} // names
	last := len(log) - 1
	for last >= 0 && log[last].Kind != thread.Recap {
		last--
	}
	steps := 0
	for i := range log[:last+1] {
		m, f := &log[i], of(&log[i])
		if m.Kind == thread.Recap {
			names, known := map[string]bool{}, 0
			for _, p := range f.recap {
				for _, x := range p.idents {
					if !names[x.norm] && before[x.norm] {
						known++
					}
					names[x.norm] = true
				}
			}
			all[m.ID], steps = steps > freshSteps && 2*known >= len(names), 0
		} else if m.Role == thread.Assistant {
			steps++
		}
		eachLine(f, func(line []mention, _ *int32, _ source) {
			for _, x := range line {
				before[x.norm] = true
			}
		})
	}
	return all
}

// freshSteps is for up to how many steps before it a log is not asked whether it holds what a summary sums up.
const freshSteps = 3

// heading reports whether a line is a heading.
func heading(s string) bool {
	if len(s) > 80 {
		return false
	}
	digits := strings.TrimLeft(s, "0123456789")
	return s[0] == '#' || len(digits) < len(s) && strings.HasPrefix(digits, ". ") && s[len(s)-1] == ':' || strings.HasPrefix(s, "**") && strings.HasSuffix(strings.TrimSuffix(s, ":"), "**")
}
