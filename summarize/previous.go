package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/summary"
)

// previous takes over the items of an earlier summary; at -1 they are older
// than all of the span.
func (b *builder) previous(s *summary.Summary) {
	b.oldTask = s.CurrentTask
	b.Requests = append(b.Requests, s.Requests...)
	for _, it := range s.Requests {
		b.requests = append(b.requests, request{idents: mentions(nil, it.Text)})
		b.once('u', it.Text)
	}
	for _, it := range s.Constraints {
		if b.once('r', it.Text) {
			b.Constraints = append(b.Constraints, it)
			b.stated = append(b.stated, rule{message: it.Text})
			b.entry(secConstraint, -1, ruleBase(it.Text)+2, nil)
		}
	}
	b.CurrentPlan, b.before = slices.Clone(s.CurrentPlan), s.CurrentPlan
	for _, f := range s.Files {
		b.fileAt[f.Path] = len(b.Files)
		f.Operations, f.Sources = slices.Clone(f.Operations), slices.Clone(f.Sources)
		b.Files = append(b.Files, f)
	}
	carry(b, &b.Decisions, s.Decisions, secDecision, 'd', 3, true, func(d summary.Decision) string { return d.Decision })
	carry(b, &b.FailedAttempts, s.FailedAttempts, secFailed, 'f', 1.5, true, func(it summary.Item) string { return it.Text })
	for _, o := range s.ToolOutcomes {
		b.outcomes[o.Tool+"\x00"+o.Input] = len(b.ToolOutcomes)
		b.ToolOutcomes = append(b.ToolOutcomes, o)
		b.latest = append(b.latest, len(b.candidates))
		b.entry(secOutcome, -1, 0.6, mentions(nil, o.Input))
	}
	carry(b, &b.OpenItems, s.OpenItems, secOpen, 'o', 1.5, false, func(o summary.OpenItem) string { return o.Description })
	carry(b, &b.Artifacts, s.Artifacts, secArtifact, 'a', 6, false, func(a summary.ArtifactReference) string { return a.ArtifactID })
	for _, it := range s.Changes {
		if b.once('e', it.Text) {
			b.changes = append(b.changes, change{Item: it})
			b.entry(secChange, -1, 1, mentions(nil, it.Text))
		}
	}
	b.previousGroups(secFact, s.Facts, 1)
	b.previousWords(s.Conclusions)
	b.previousGroups(secReport, s.Reports, reportWorth)
	b.previousGroups(secSnippet, s.Identifiers, 0.2)
}

// carry takes over plain entries that are new, with a candidate each; named says that
// their identifiers count.
func carry[T any](b *builder, into *[]T, list []T, sec section, kind byte, base float32, named bool, text func(T) string) {
	for _, e := range list {
		if !b.once(kind, text(e)) {
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

// previousWords takes over what the assistant said, piece by piece as it was chosen.
func (b *builder) previousWords(items []summary.Item) {
	for _, it := range items {
		g := group{turn: it.Turn, sources: it.Sources}
		line := 0
		for _, run := range strings.Split(it.Text, "\n"+gap) {
			for _, p := range paragraphs(run) {
				if heading(p.text) || !b.once('c', p.text) {
					continue
				}
				p.line += line
				base := wordsFinal * min(1, float32(len(p.text))/fullWords)
				b.piece(secSaid, &g, -1, base, p).terms = b.terms.add(-1, p.terms)
			}
			line += strings.Count(run, "\n") + 2 // something was left out behind it
		}
		b.groups[secSaid] = append(b.groups[secSaid], g)
	}
}

// previousGroups takes over items that were made of pieces, as pieces again.
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
			if line == "" || !b.once('t', line) {
				continue
			}
			b.piece(sec, &g, -1, base, piece{text: line, idents: mentions(nil, line), place: place{line: at}})
		}
		b.groups[sec] = append(b.groups[sec], g)
	}
}
