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
	b.requests = append(b.requests, s.Requests...)
	for _, it := range s.Requests {
		b.asking = append(b.asking, mentions(nil, it.Text))
		b.once('u', it.Text)
	}
	for _, it := range s.Constraints {
		if b.once('r', it.Text) {
			b.constraints = append(b.constraints, it)
			b.stated = append(b.stated, rule{message: it.Text})
			b.add(candidate{section: secConstraint, entry: len(b.constraints) - 1, piece: -1, at: -1, base: ruleBase(it.Text) + 2}, nil)
		}
	}
	b.plan = slices.Clone(s.CurrentPlan)
	for _, f := range s.Files {
		b.fileAt[f.Path] = len(b.files)
		f.Operations, f.Sources = slices.Clone(f.Operations), slices.Clone(f.Sources)
		b.files = append(b.files, f)
	}
	for _, d := range s.Decisions {
		if b.once('d', d.Decision) {
			b.decisions = append(b.decisions, d)
			b.add(candidate{section: secDecision, entry: len(b.decisions) - 1, piece: -1, at: -1, base: 3}, mentions(nil, d.Decision))
		}
	}
	for _, it := range s.FailedAttempts {
		if b.once('f', it.Text) {
			b.failed = append(b.failed, it)
			b.add(candidate{section: secFailed, entry: len(b.failed) - 1, piece: -1, at: -1, base: 1.5}, mentions(nil, it.Text))
		}
	}
	for _, o := range s.ToolOutcomes {
		b.outcomes[o.Tool+"\x00"+o.Input] = len(b.pool.outcomes)
		b.pool.outcomes = append(b.pool.outcomes, o)
		b.latest = append(b.latest, len(b.candidates))
		b.add(candidate{section: secOutcome, entry: len(b.pool.outcomes) - 1, piece: -1, at: -1, base: 0.6}, mentions(nil, o.Input))
	}
	for _, o := range s.OpenItems {
		if b.once('o', o.Description) {
			b.open = append(b.open, o)
			b.add(candidate{section: secOpen, entry: len(b.open) - 1, piece: -1, at: -1, base: 1.5}, nil)
		}
	}
	for _, a := range s.Artifacts {
		if b.once('a', a.ArtifactID) {
			b.pool.artifacts = append(b.pool.artifacts, a)
			b.add(candidate{section: secArtifact, entry: len(b.pool.artifacts) - 1, piece: -1, at: -1, base: 6}, nil)
		}
	}
	for _, it := range s.Changes {
		if b.once('e', it.Text) {
			b.changes = append(b.changes, change{Item: it})
			b.add(candidate{section: secChange, entry: len(b.changes) - 1, piece: -1, at: -1, base: 1}, mentions(nil, it.Text))
		}
	}
	b.previousGroups(&b.recaps, secFact, s.Facts, 't', 1)
	b.previousWords(s.Conclusions)
	b.previousGroups(&b.snippets, secSnippet, s.Identifiers, 't', 0.2)
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
				b.add(candidate{section: secSaid, entry: len(b.said), piece: len(g.pieces), at: -1, base: base, text: p.text, terms: b.terms.add(p.terms)}, p.idents)
				g.add(p)
			}
			line += strings.Count(run, "\n") + 2 // something was left out behind it
		}
		b.said = append(b.said, g)
	}
}

// previousGroups takes over items that were made of pieces, as pieces again.
func (b *builder) previousGroups(groups *[]group, sec section, items []summary.Item, kind byte, base float32) {
	for _, it := range items {
		g := group{turn: it.Turn, sources: it.Sources}
		lines := strings.Split(it.Text, "\n")
		if len(lines) > 1 && strings.HasSuffix(lines[0], ":") {
			g.label = strings.TrimSuffix(lines[0], ":")
			lines = lines[1:]
		}
		entry := len(*groups)
		if sec == secFact {
			entry = -1 - entry
		}
		at := 0
		for _, line := range lines {
			line, apart := strings.CutPrefix(line, gap)
			if at++; apart {
				at++
			}
			if line == "" || !b.once(kind, line) {
				continue
			}
			b.add(candidate{section: sec, entry: entry, piece: len(g.pieces), at: -1, base: base, text: line}, mentions(nil, line))
			g.add(piece{text: line, place: place{line: at}})
		}
		*groups = append(*groups, g)
	}
}
