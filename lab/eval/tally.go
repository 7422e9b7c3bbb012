package eval

import "github.com/palimpsest-ai/palimpsest/lab/eval/references"

// tally counts the needs of a session, and those that a contender met.
type tally struct {
	needs, direct, bound, strict, lookup, first, pointer float64
	// said counts the needs of the agent's answers, ends those up to the end of the
	// session, each with those that are bound.
	said, saidBound, ends, endsBound float64
	// tokens and budget tell how full the prompts were. over counts prompts over their
	// budget, failed those that were not made, prompts all.
	tokens, budget float64
	// files counts files, told those of which the prompt tells a state, right the right
	// ones.
	right, told, files    float64
	over, failed, prompts float64
	// worst is the largest overshoot, as a share of the budget.
	worst float64
	stale references.Freshness
	// lines counts the lines that files lost and the prompt quotes.
	lines references.Freshness
}

func (t *tally) add(m *references.Moment, s *references.Shown, out []references.Found, budget int) {
	t.prompts++
	t.tokens += float64(s.Tokens)
	t.budget += float64(budget)
	if s.Tokens > budget {
		t.over++
		t.worst = max(t.worst, float64(s.Tokens)/float64(max(1, budget))-1)
	}
	t.stale.Add(m.Freshness(s))
	t.lines.Add(m.Outdated(s))
	count := func(refs []references.Need) (all, bound float64) {
		other := *m
		other.Needs = refs
		for _, f := range other.Scan(s) {
			if all++; f.Bound {
				bound++
			}
		}
		return all, bound
	}
	all, bound := count(m.Said)
	t.said += all
	t.saidBound += bound
	all, bound = count(m.ToEnd)
	t.ends += all
	t.endsBound += bound
	right, told, files := m.Trails(s)
	t.right += right
	t.told += told
	t.files += files
	if s.Failed != nil {
		t.failed++
	}
	for i := range m.Needs {
		t.addFound(out[i])
	}
}

func (t *tally) addFound(f references.Found) {
	t.needs++
	count := func(x *float64, is bool) {
		if is {
			*x++
		}
	}
	count(&t.direct, f.Direct)
	count(&t.bound, f.Bound)
	count(&t.strict, f.Strict)
	count(&t.lookup, f.Bound || f.Lookup)
	count(&t.first, f.Bound || f.First)
	count(&t.pointer, f.Bound || f.Pointer)
}

// numbers are the fields that add up: all but worst.
func (t *tally) numbers() []*float64 {
	return []*float64{&t.needs, &t.direct, &t.bound, &t.strict, &t.lookup, &t.first, &t.tokens, &t.budget, &t.over, &t.failed, &t.prompts, &t.right, &t.told, &t.files,
		&t.pointer, &t.said, &t.saidBound, &t.ends, &t.endsBound, &t.stale.Current, &t.stale.Old, &t.lines.Current, &t.lines.Old}
}

func (t *tally) sum(x tally) {
	its := x.numbers()
	for i, mine := range t.numbers() {
		*mine += *its[i]
	}
	t.worst = max(t.worst, x.worst)
}

func (t *tally) scale(by float64) {
	for _, x := range t.numbers() {
		*x *= by
	}
}
