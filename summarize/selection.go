package summarize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

const (
	// workShare is the share of the budget for the state of the work; operationShare is
	// that of an agent that operates a system instead of editing files.
	workShare, operationShare = 0.15, 0.30
	// enoughWork is how many tokens the state of the work gets at most.
	enoughWork = 500
	// leastWork is how many tokens it gets of a small budget, up to a third. A budget below
	// three times that gives only the share.
	leastWork = 260
	// mostWork is the share that it may take of one of several summaries, since it speaks
	// for all of them.
	mostWork = 0.4
	// fullness is how much of the budget is filled by estimate before the rest is counted.
	fullness = 0.97
	// keptRequest is the length, in bytes, that user messages keep as long as all
	// of them together stay under shares.mostRequests: a message cut by half a line is
	// worse than one line of tool output less.
	keptRequest = 400
	// littleMore is how far a message may exceed its room before it is trimmed, in bytes:
	// the mark of the cut takes nearly as much.
	littleMore = 100
	// commandBytes is what stays of the text of a slash command, in bytes.
	commandBytes = 120
	// leastRequest is the least that a user message is trimmed to, in bytes.
	leastRequest = 140
	// littleLeft is the length, in bytes, from which what is left of a shortened message beside the
	// sentences that are listed is worth a line.
	littleLeft = 24
	// taskBytes bounds the current task, which also stands among the requests.
	taskBytes = 400
)

// likely is the value from which a line of output is taken without a limit: about that of an
// identifier of which nothing else is known.
const likely = 0.02

// selection chooses from a pool what fits a budget.
type selection struct {
	pool       *pool
	count      func(string) int // of parts, kept
	countWhole func(string) int // of renderings, not kept
	budget     int              // tokens; 0 is no limit
	shares     shares

	entries        [sections][]string // rendered plain entries
	rank           []int              // requests, the ones to keep longest first
	requests       []summary.Item     // as trimmed
	work           state.Work         // as much of it as has room
	workTokens     int
	laid           laidDown // what the user laid down
	task           string
	marked         []int // candidates: the lines of results that the person asked for
	taken          []int // candidates, in the order taken
	isTaken        []bool
	covered        []bool                // by identifier
	pathed         map[string][]groupKey // the groups whose label names a file
	inFull         map[string]bool       // user messages that are not trimmed
	groups         [sections][]chosenGroup
	used           [sections]bool
	toldTerms      []bool
	saidBytes      map[int]int // bytes of the assistant's words, by turn
	snippets       int         // tokens of lines of output
	snippetsCapped bool        // lines of output may take only their share
	spent          int         // tokens, by adding up the parts
}

// chosenGroup is a group with its label as it will stand, and whether a piece of it is taken.
type chosenGroup struct {
	*group
	label string
	open  bool
}

type groupKey struct {
	section section
	entry   int
}

// choose makes the best summary of a pool for a budget, with that share for what the user laid down. count
// may cache, whole need not.
func choose(p *pool, budget int, standing float64, count, whole func(string) int) (summary.Summary, error) {
	s := &selection{pool: p, budget: budget, shares: sharesFor(budget, p.byModel, standing), count: count, countWhole: whole, pathed: map[string][]groupKey{}}
	for sec := range sections {
		for i := range p.groups[sec] {
			if path := p.groups[sec][i].path; path != "" {
				s.pathed[path] = append(s.pathed[path], groupKey{sec, i})
			}
		}
	}
	s.renderEntries()
	s.weighAsked()
	s.rankRequests()
	s.work = p.Work
	s.laid = p.stands.choose(cmp.Or(p.standing, int(s.shares.standing*float32(budget))), count)
	if p.standing > 0 && budget > 0 {
		budget += s.laid.tokens
		s.budget = budget
	}
	if budget <= 0 {
		s.reset(len(p.Requests), 1<<30)
		s.takeAll()
		return s.build(), nil
	}
	s.fitWork()
	limit := int(float32(budget) * fullness)
	share := s.shares.requests
	var best, out summary.Summary
	var tried []summary.Item // the requests of out
	n, most := 0, -1         // tokens of out, of the best
	for range 6 {
		if p.effort != nil && !p.effort.Live(1<<20) {
			break // the result is dropped
		}
		s.trimRequests(int(share * float32(budget)))
		if n == 0 || !slices.EqualFunc(s.requests, tried, func(a, b summary.Item) bool { return a.Text == b.Text && a.Turn == b.Turn }) { // else it is the same again
			tried = s.requests
			s.takeFloors(limit)
			s.takeBest(limit)
			out, n = s.fit()
		}
		if n > budget {
			share /= 3
			continue
		}
		if n > most {
			best, most = out, n
		}
		if n >= budget*95/100 || !s.requestsTrimmed() {
			break
		}
		// Everything is in and there is room: fuller user messages.
		more := share + 0.9*float32(budget-n)/float32(budget)
		if more <= share+0.005 {
			break
		}
		share = more
	}
	if most >= 0 {
		return best, nil
	}
	return s.least()
}

// fitWork drops what the state of the work has no room for.
func (s *selection) fitWork() {
	share := float32(workShare)
	if len(s.work.Operations) > 0 {
		share = operationShare
	}
	tokens := workRoom(s.budget, share)
	if s.pool.together > s.budget {
		tokens = max(tokens, min(workRoom(s.pool.together, share), int(mostWork*float32(s.budget))))
	}
	s.work = summary.FitWork(s.work, tokens, s.count)
	s.workTokens = s.count(summary.RenderWork(s.work))
}

// WorkRoom is how many tokens the state of the work may take of summaries of together tokens.
func WorkRoom(together int) int { return workRoom(together, workShare) }

func workRoom(budget int, share float32) int {
	tokens := int(share * float32(budget))
	if budget >= 3*leastWork {
		tokens = max(tokens, min(leastWork, budget/3))
	}
	return min(tokens, enoughWork)
}

// least makes the smallest summary: the trimmed task alone.
func (s *selection) least() (summary.Summary, error) {
	need := 0
	for _, limit := range [...]int{taskBytes, 200, 120, 64} {
		out := summary.Summary{Span: s.pool.Span, CurrentTask: clip.HeadAndTail(s.taskText(), limit)}
		need = s.countWhole(out.Render())
		if need <= s.budget {
			return out, nil
		}
	}
	return summary.Summary{}, &BudgetError{Need: need, Budget: s.budget}
}

// renderEntries renders the plain entries, to count them.
func (s *selection) renderEntries() {
	p := s.pool
	for sec, alone := range map[section]summary.Summary{
		secPlan: {CurrentPlan: p.CurrentPlan}, secFile: {Files: p.Files}, secDecision: {Decisions: p.Decisions},
		secOutcome: {ToolOutcomes: p.ToolOutcomes}, secOpen: {OpenItems: p.OpenItems}, secArtifact: {Artifacts: p.Artifacts},
	} {
		if all := alone.Sections(); len(all) > 0 {
			s.entries[sec] = all[0].Entries
		}
	}
	s.entries[secFailed] = summary.Lines(p.FailedAttempts, false)
}

// askedWeight is added to the base value of a candidate for each word of the user's
// instructions in it, up to mostAsked words. Two of them make a line of output worth as much
// as the last words of a turn. markedWeight is for each word that marks a line (see weighAsked);
// such lines come first, up to markedShare of the room.
const (
	askedWeight, markedWeight = 2, 50
	mostAsked                 = 3
	markedShare               = 0.7
)

// weighAsked raises what holds words of the user's instructions, and the lines that the requests want collected
// ("each has a TOTAL, keep all"): those with a word of theirs that marks lines.
func (s *selection) weighAsked() {
	p, in := s.pool, map[string][]int{}
	var held []string // words of the instructions, or of the requests
	for i := range p.candidates {
		c, asked := &p.candidates[i], 0
		line := c.section == secSnippet && !c.dead
		if held = held[:0]; !line && len(p.asked) == 0 {
			continue
		}
		for w := range allStems(s.text(c)) {
			if wanted := p.asked[w]; !wanted && !p.requested[w] || slices.Contains(held, w) {
				continue
			} else if wanted {
				asked++
			}
			if held = append(held, w); line && p.requested[w] {
				in[w] = append(in[w], i)
			}
		}
		c.base += askedWeight * float32(min(asked, mostAsked))
	}
	for _, lines := range in {
		if marks(lines, func(i int) int { return p.candidates[i].entry }, len(p.groups[secSnippet])) {
			for _, i := range lines {
				p.candidates[i].base += markedWeight
			}
			s.marked = append(s.marked, lines...)
		}
	}
	s.marked = slices.Compact(slices.Sorted(slices.Values(s.marked)))
}

// marks reports whether a word of the requests marks the lines that hold it, of so many results: it stands in half
// of them, but hardly twice in one.
func marks(lines []int, result func(line int) int, results int) bool {
	in := map[int]bool{}
	for _, i := range lines {
		in[result(i)] = true
	}
	return len(in) >= max(8, results/2) && 4*len(lines) <= 5*len(in)
}

// text is what taking a candidate adds to the rendering.
func (s *selection) text(c *candidate) string {
	if c.piece >= 0 {
		if strings.HasPrefix(c.text, "|") && s.groups[c.section] != nil && s.group(c).open {
			return lastLine(c.text) // the head of the table was most likely told
		}
		return c.text
	}
	return s.entries[c.section][c.entry]
}

// reset starts anew with the kept best requests, trimmed to about each bytes.
func (s *selection) reset(kept, each int) {
	p := s.pool
	s.requests, s.taken, s.spent = s.requests[:0:0], nil, 0
	s.isTaken = make([]bool, len(p.candidates))
	s.covered = make([]bool, len(p.names.weight))
	for sec := range sections {
		s.groups[sec] = make([]chosenGroup, len(p.groups[sec]))
		for i := range p.groups[sec] {
			g := &p.groups[sec][i]
			s.groups[sec][i] = chosenGroup{group: g, label: g.label}
		}
	}
	s.used = [sections]bool{}
	s.inFull = map[string]bool{}
	s.saidBytes, s.snippets = map[int]int{}, 0
	s.toldTerms = make([]bool, len(s.pool.terms.count))
	if s.task = ""; !s.pool.later {
		s.task = clip.HeadAndTail(s.taskText(), taskBytes)
	}
	keep := slices.Clone(s.rank[:min(kept, len(s.rank))])
	slices.Sort(keep)
	for _, i := range keep {
		r, holds := p.Requests[i], p.requests[i].idents
		if limit := s.bytesFor(i, each); len(r.Text) > limit+littleMore {
			if r.Text = s.laid.shorten(&r, limit); r.Text == "" {
				continue // the list has it
			}
			holds = mentions(nil, r.Text)
		} else {
			s.inFull[r.Text] = true
		}
		s.requests = append(s.requests, r)
		for _, x := range holds {
			if id, ok := p.names.id[x.norm]; ok {
				s.cover(id)
			}
		}
	}
}

// takeFloors fills each section up to its floor.
func (s *selection) takeFloors(limit int) {
	bySection := [sections][]int{}
	for i := range s.pool.candidates {
		if c := &s.pool.candidates[i]; !c.dead {
			bySection[c.section] = append(bySection[c.section], i)
		}
	}
	room := limit - s.spent
	s.fill(s.marked, s.spent+int(markedShare*float32(room)))
	for _, f := range s.shares.floors {
		s.fill(bySection[f.section], min(limit, s.spent+int(f.share*float32(room))))
	}
}

// takeBest fills the rest with the best of all sections: lines of output first up to their
// share, then without a limit as long as they are worth it.
func (s *selection) takeBest(limit int) {
	rest := make([]int, 0, len(s.pool.candidates))
	for i := range s.pool.candidates {
		if !s.isTaken[i] && !s.pool.candidates[i].dead {
			rest = append(rest, i)
		}
	}
	s.snippetsCapped = true
	s.fill(rest, limit)
	s.snippetsCapped = false
	s.closeGaps(limit)
	s.fill(slices.DeleteFunc(rest, func(i int) bool { return s.isTaken[i] }), limit)
}

// shortGap is how many tokens may lie between two told pieces of a message and be told as well: what is left
// out there would be a mark, and the text around it without what it refers to.
const shortGap = 100

// closeGaps takes what is short and lies between told pieces of what the assistant said in a message.
func (s *selection) closeGaps(limit int) {
	last, cost := -1, 0 // the last told piece, and the cost of those after it
	for i := range s.pool.candidates {
		c := &s.pool.candidates[i]
		switch {
		case c.section != secSaid || c.dead:
		case last < 0 || s.pool.candidates[last].entry != c.entry:
			if last, cost = -1, 0; s.isTaken[i] {
				last = i
			}
		case !s.isTaken[i]:
			cost += s.cost(c)
		default:
			if 0 < cost && cost <= shortGap && s.spent+cost <= limit {
				for k := last + 1; k < i; k++ {
					if between := &s.pool.candidates[k]; between.section == secSaid && !between.dead {
						s.take(k, s.cost(between))
					}
				}
			}
			last, cost = i, 0
		}
	}
}

// takeAll takes everything, for no budget, except lines of output that are unlikely to be
// needed.
func (s *selection) takeAll() {
	for i := range s.pool.candidates {
		c := &s.pool.candidates[i]
		if !c.dead && (c.section != secSnippet || s.value(c) >= likely) {
			s.take(i, 0)
		}
	}
}

func (s *selection) group(c *candidate) *chosenGroup { return &s.groups[c.section][c.entry] }

// fill takes candidates of the list, the densest first, while they fit.
func (s *selection) fill(list []int, limit int) {
	if s.spent >= limit {
		return
	}
	misses := 0
	density := func(i int) float32 { return s.density(&s.pool.candidates[i]) }
	greedy(list, density, func(i int, density float32) bool {
		c := &s.pool.candidates[i]
		switch {
		case s.snippetsCapped && density < worthSaying:
			return false // the others are worth less
		case c.section == secSnippet && s.snippetsCapped && s.snippets >= int(s.shares.snippets*float32(s.budget)):
			return true
		case c.section == secSnippet && density < worthShowing && s.snippets >= fewLines && !s.pool.full:
			return true
		}
		if cost := s.cost(c); s.spent+cost > limit {
			misses++ // too large for what is left; a smaller one may fit
		} else {
			s.take(i, cost)
		}
		return misses < mostMisses && s.spent < limit
	})
}

// mostMisses is how many candidates may be too large before fill stops.
const mostMisses = 60

// cost is what taking a candidate adds, in tokens.
func (s *selection) cost(c *candidate) int {
	n := s.count(s.text(c)) + 1
	if c.piece >= 0 {
		n++ // the indent
		if g := s.group(c); !g.open {
			n += 6
			if g.label != "" {
				n += s.count(g.label)
			}
		}
	}
	if !s.used[c.section] {
		n += 18 // a heading
	}
	return n
}

func (s *selection) take(i, cost int) {
	c := &s.pool.candidates[i]
	s.isTaken[i] = true
	s.taken = append(s.taken, i)
	s.used[c.section] = true
	for _, t := range c.terms {
		s.toldTerms[t] = true
	}
	switch c.section {
	case secSaid:
		s.saidBytes[s.group(c).turn] += len(c.text)
	case secSnippet:
		s.snippets += cost
	case secFile:
		for _, k := range s.pathed[s.pool.Files[c.entry].Path] { // the list has its path
			g := &s.groups[k.section][k.entry]
			before, after, _ := strings.Cut(g.group.label, g.path)
			g.label = before + lastParts(g.path) + after
		}
	}
	s.spent += cost
	s.cover(c.idents...)
	if c.piece >= 0 {
		g := s.group(c)
		g.open = true
		s.cover(g.idents...)
	}
}

// cover notes that identifiers stand in what was taken.
func (s *selection) cover(idents ...int32) {
	for _, id := range idents {
		s.covered[id] = true
	}
}

// fit builds the summary and counts it as a whole, which may differ from the sum of the
// parts: it takes more while there is room, and drops the last ones taken while it is over.
func (s *selection) fit() (summary.Summary, int) {
	out := s.build()
	n := s.countWhole(out.Render())
	for range 4 {
		if n > s.budget || n >= s.budget*96/100 {
			break
		}
		before := len(s.taken)
		s.spent = n
		s.takeBest(s.budget - 2)
		if len(s.taken) == before {
			break
		}
		out = s.build()
		n = s.countWhole(out.Render())
	}
	for n > s.budget && len(s.taken) > 0 {
		for over := n - s.budget; over > 0 && len(s.taken) > 0; {
			last := len(s.taken) - 1
			over -= s.count(s.text(&s.pool.candidates[s.taken[last]])) + 1
			s.taken = s.taken[:last]
		}
		out = s.build()
		n = s.countWhole(out.Render())
	}
	return out, n
}
