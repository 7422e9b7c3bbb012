package summarize

import "cmp"

const (
	// usualNews is the sum of the terms of a usual sentence.
	usualNews = 5
	// worthSaying is the value per token from which a candidate comes before lines of output
	// that exceed their share.
	worthSaying = 0.003
	// worthShowing is the value per token that lines of output must have once they take fewLines tokens: without
	// the others the prompt is shorter, or has room for messages as they are.
	worthShowing = 0.0006
	fewLines     = 500
	// wordsWeight is the weight of the assistant's words and of failures: what a
	// colleague would tell first.
	wordsWeight = 0.05
	// wordsWithModel is the same beside items that a model wrote.
	wordsWithModel = 0.02
	// besideModel is a factor for files there: what the model tells comes first.
	besideModel = 0.7
	// wordsFrame is added to the length of words when they are ranked, in tokens: a
	// whole sentence tells more than two halves.
	wordsFrame = 10
	// turnBytes is how many bytes of the assistant's words of a turn halve the value of more of
	// them: every turn gets a line before one gets a page.
	turnBytes = 500
	// baseWeight is the weight of a candidate's base value beside the chances that its
	// identifiers are written again. Tuned on the dev split (lab/README.md).
	baseWeight = 0.01
	// ruleWeight is the weight of the plan, open items, artifacts, and of
	// what a model or an earlier summary found worth saying: they come before any line of
	// output.
	ruleWeight = 0.2
	// saidBefore is a factor for a term that comes up again later: the last statement about a
	// thing is the one that holds.
	saidBefore = 0.5
	// bytesPerToken is an estimate for ranking; costs are counted.
	bytesPerToken = 3.6
)

// value is what a candidate adds: its weighted base value and the identifiers that nothing
// taken so far shows.
func (s *selection) value(c *candidate) float32 {
	v := s.plusNew(s.weight(c)*c.base, c.idents)
	if c.piece >= 0 && !s.group(c).open {
		v = s.plusNew(v, s.group(c).idents)
	}
	return v
}

// plusNew adds the weights of the identifiers that nothing taken so far shows.
func (s *selection) plusNew(v float32, idents []int32) float32 {
	for _, id := range idents {
		if !s.covered[id] {
			v += s.pool.names.weight[id]
		}
	}
	return v
}

// weight is the weight of a candidate's base value.
func (s *selection) weight(c *candidate) float32 {
	switch c.section {
	case secPlan, secOpen, secArtifact:
		return ruleWeight
	case secDecision, secFact:
		if c.at < 0 {
			return ruleWeight
		}
	case secFile:
		if s.pool.byModel {
			return baseWeight * besideModel
		}
	case secSaid, secReport, secFailed:
		if s.pool.byModel && c.section == secFailed && c.at < 0 {
			return ruleWeight
		}
		return s.shares.words
	}
	return baseWeight
}

// density is the value per token, by estimated length.
func (s *selection) density(c *candidate) float32 {
	cost := float32(len(s.text(c)))/bytesPerToken + 2
	if c.piece >= 0 {
		if g := s.group(c); !g.open {
			cost += 6 + float32(len(g.label))/bytesPerToken
		}
	}
	v := s.value(c)
	own := s.weight(c) * c.base
	names := v - own
	if len(c.terms) > 0 {
		own *= s.newTerms(c)
		cost += wordsFrame
	}
	if c.section == secSaid {
		told := float32(s.saidBytes[s.group(c).turn]) / turnBytes
		cost *= 1 + told
	}
	return (own + names) / cost
}

// newTerms weighs the terms of a candidate that nothing taken so far holds, each by how often
// it comes up in the pool.
func (s *selection) newTerms(c *candidate) float32 {
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

// shares divide a budget: floors, standing, requests, mostRequests and snippets are ratios of it.
type shares struct {
	// floors are what each section may fill, in this order, before the sections compete.
	// Without them the most numerous kind of candidate would take everything.
	floors []floor
	// requests is for the user's messages in full, before they are trimmed in the middle;
	// mostRequests is for all of them at keptRequest bytes each.
	requests, mostRequests float32
	// standing is for what the user laid down.
	standing float32
	// snippets is for lines of output, until everything else worth saying is said.
	snippets float32
	// words is no ratio: it weighs what the assistant said.
	words float32
}

type floor struct {
	section section
	share   float32
}

var largeShares = shares{
	floors: []floor{
		{secPlan, 0.08}, {secFile, 0.12}, {secDecision, 0.06}, {secFailed, 0.14}, {secSaid, 0.45}, {secReport, 0.06},
		{secOutcome, 0.05}, {secFact, 0.05}, {secOpen, 0.04}, {secArtifact, 0.05}, {secSnippet, 0.07},
	},
	requests: 0.30, mostRequests: 0.55, snippets: 0.10, words: wordsWeight,
}

// smallShares are for a small budget: its reader needs the story.
var smallShares = shares{
	floors: []floor{
		{secPlan, 0.08}, {secFile, 0.08}, {secDecision, 0.06}, {secFailed, 0.14}, {secSaid, 0.60}, {secReport, 0.04},
		{secOutcome, 0.0167}, {secFact, 0.05}, {secOpen, 0.04}, {secArtifact, 0.05}, {secSnippet, 0.025},
	},
	requests: 0.20, mostRequests: 0.55, snippets: 0.05, words: wordsWeight,
}

// modelFloors replace the others where a model wrote facts, decisions and open items: what
// it understood comes before sentences that code found.
var modelFloors = []floor{
	{secPlan, 0.10}, {secOpen, 0.10}, {secDecision, 0.15}, {secFact, 0.45}, {secFailed, 0.15}, {secFile, 0.06}, {secSaid, 0.12},
	{secOutcome, 0.03}, {secArtifact, 0.03}, {secSnippet, 0.03},
}

// smallBudget is the budget, in tokens, below which smallShares apply.
const smallBudget = 4000

// sharesFor returns the shares of a budget in tokens; 0 is no limit. byModel says that a
// model wrote some of the items: it tells what the user wanted as well. standing is Extractive.StandingShare.
func sharesFor(budget int, byModel bool, standing float64) shares {
	s := largeShares
	if 0 < budget && budget < smallBudget {
		s = smallShares
	}
	s.standing = float32(cmp.Or(standing, standingShare))
	if byModel {
		s.floors, s.standing, s.requests, s.mostRequests, s.words = modelFloors, s.standing/2, 0.20, 0.30, wordsWithModel
	}
	return s
}

// scored is a candidate with its density.
type scored struct {
	density float32
	at      int32
}

// ranked is a heap with the densest on top; of equal ones the newest.
type ranked []scored

// down moves the entry at i below those that are denser.
func (r ranked) down(i int) {
	above := func(a, b scored) bool { return a.density > b.density || a.density == b.density && a.at > b.at }
	for {
		best := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(r); k++ {
			if above(r[k], r[best]) {
				best = k
			}
		}
		if best == i {
			return
		}
		r[i], r[best] = r[best], r[i]
		i = best
	}
}

// greedy calls take with the candidates that have a density, the densest first, until take
// returns false. Densities only fall as others are taken, so a candidate whose new density
// still beats the old one of the next is the best (lazy greedy for submodular values;
// Minoux 1978).
func greedy(list []int, density func(i int) float32, take func(i int, density float32) (more bool)) {
	h := make(ranked, 0, len(list))
	for _, i := range list {
		if d := density(i); d > 0 {
			h = append(h, scored{d, int32(i)})
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	for len(h) > 0 {
		top := h[0]
		if d := density(int(top.at)); d < top.density {
			h[0].density = d
			h.down(0)
			continue
		}
		h[0] = h[len(h)-1]
		h = h[:len(h)-1]
		h.down(0)
		if !take(int(top.at), top.density) {
			return
		}
	}
}
