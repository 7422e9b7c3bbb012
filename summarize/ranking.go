package summarize

const (
	// roomForCode is a budget, in tokens, from which what edits wrote counts double.
	roomForCode = 10_000
	// usualNews is what the terms of a usual sentence come to.
	usualNews = 5
	// worthSaying is the value per token from which something comes before more
	// lines of output than their share.
	worthSaying = 0.003
	// wordsWeight is what the worth of the assistant's words, of changes and of
	// failures counts: what a colleague would tell first.
	wordsWeight = 0.05
	// wordsWithModel is the same beside items that a model wrote.
	wordsWithModel = 0.02
	// wordsNames is what an identifier counts among the assistant's words, which say
	// more than names; wordsFrame is added to their length when they are ranked, in
	// tokens, since a whole sentence tells more than two halves.
	wordsNames = 0.3
	wordsFrame = 10
	// turnBytes is how much of the assistant's words of one turn halves what more of
	// them is worth: every turn gets a line before one gets a page.
	turnBytes = 500
	// baseWeight is what a unit of the worth that a candidate has by itself counts
	// beside chances that an identifier is written again. Tuned on the dev split
	// (lab/README.md).
	baseWeight = 0.01
	// ruleWeight is that of the user's rules, of the plan, of open items, of
	// pointers, and of what a model or an earlier summary found worth saying: they
	// come before any line of output.
	ruleWeight = 0.2
	// saidBefore is what a term counts in words after which it comes up again: what was
	// said last of a thing is what holds.
	saidBefore = 0.5
	// bytesPerToken only ranks candidates; what is charged is counted.
	bytesPerToken = 3.6
)

// value is what a candidate adds: its own worth and the identifiers that
// nothing taken before has shown.
func (s *selection) value(c *candidate) float32 {
	v := s.weight(c) * c.base
	for _, id := range c.idents {
		if !s.covered[id] {
			v += s.pool.names.weight[id]
		}
	}
	if c.piece >= 0 && !*s.isOpen(c) {
		for _, id := range s.group(c).idents {
			if !s.covered[id] {
				v += s.pool.names.weight[id]
			}
		}
	}
	return v
}

// weight is what the worth that a candidate has by itself counts.
func (s *selection) weight(c *candidate) float32 {
	switch c.section {
	case secConstraint:
		if !s.inFull[s.pool.stated[c.entry].message] {
			return ruleWeight
		}
	case secPlan, secOpen, secArtifact:
		return ruleWeight
	case secDecision, secFact:
		if c.at < 0 || c.choice && s.floor {
			return ruleWeight
		}
	case secChange:
		if len(c.terms) > 0 && s.budget >= roomForCode {
			return 2 * wordsWeight
		}
		return s.shares.changes
	case secSaid, secReport, secFailed:
		if s.pool.written && c.section == secFailed && c.at < 0 {
			return ruleWeight
		}
		return s.shares.words
	}
	return baseWeight
}

// twice reports whether a candidate may be no rule, and stands among the user's
// messages anyway.
func (s *selection) twice(c *candidate) bool {
	if c.section != secConstraint {
		return false
	}
	r := s.pool.stated[c.entry]
	return r.weak && s.inFull[r.message]
}

// density is the value per token, by estimated size.
func (s *selection) density(c *candidate) float32 {
	if s.twice(c) {
		return 0
	}
	cost := float32(len(s.text(c)))/bytesPerToken + 2
	if c.piece >= 0 && !*s.isOpen(c) {
		cost += 6 + float32(len(s.label(c)))/bytesPerToken
	}
	v := s.value(c)
	own := s.weight(c) * c.base
	names := v - own
	if len(c.terms) > 0 {
		own *= s.news(c)
		cost += wordsFrame
	}
	if c.section == secSaid {
		told := float32(s.told[s.group(c).turn]) / turnBytes
		return (own + names*wordsNames) / (1 + told) / cost
	}
	return (own + names) / cost
}

// news is what a candidate of the assistant's words tells that is not told yet: its
// terms, each as often as it comes up.
func (s *selection) news(c *candidate) float32 {
	v := float32(0)
	for _, t := range c.terms {
		if !s.toldTerms[t] {
			n := s.pool.terms.count[t]
			if c.at < s.pool.terms.last[t] {
				n *= saidBefore
			}
			v += n
		}
	}
	return v / usualNews
}
