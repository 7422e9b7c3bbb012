package eval

// tally counts the needs of a session and those that were met.
type tally struct {
	needs, direct, bound, strict, lookup, first, pointer float64
	// said counts the needs of the agent's answers, ends those up to the end of
	// the session; in each, those that stand bound.
	said, saidBound, ends, endsBound float64
	// tokens and budget give how full the prompts were; over counts prompts
	// beyond their budget, failed those that were not made, prompts all.
	tokens, budget float64
	// right, told and files count files for the trail.
	right, told, files    float64
	over, failed, prompts float64
	// worst is the largest overshoot, as a share of the budget.
	worst float64
	stale freshness
	// lines counts the lines that files lost, as told.
	lines freshness
}

func (t *tally) add(m *moment, s *shown, out []found, budget int) {
	t.prompts++
	t.tokens += float64(s.tokens)
	t.budget += float64(budget)
	if s.tokens > budget {
		t.over++
		t.worst = max(t.worst, float64(s.tokens)/float64(max(1, budget))-1)
	}
	t.stale.add(m.freshness(s))
	t.lines.add(m.outdated(s))
	count := func(refs []need) (all, bound float64) {
		other := *m
		other.refs = refs
		for _, f := range other.scan(s) {
			if all++; f.bound {
				bound++
			}
		}
		return all, bound
	}
	all, bound := count(m.says)
	t.said += all
	t.saidBound += bound
	all, bound = count(m.ends)
	t.ends += all
	t.endsBound += bound
	right, told, files := m.trails(s)
	t.right += right
	t.told += told
	t.files += files
	if s.failed != nil {
		t.failed++
	}
	for i := range m.refs {
		t.one(out[i])
	}
}

func (t *tally) one(f found) {
	t.needs++
	count := func(x *float64, is bool) {
		if is {
			*x++
		}
	}
	count(&t.direct, f.direct)
	count(&t.bound, f.bound)
	count(&t.strict, f.strict)
	count(&t.lookup, f.bound || f.lookup)
	count(&t.first, f.bound || f.first)
	count(&t.pointer, f.bound || f.pointer)
}

func (t *tally) sum(x tally) {
	t.needs += x.needs
	t.direct += x.direct
	t.bound += x.bound
	t.strict += x.strict
	t.lookup += x.lookup
	t.first += x.first
	t.tokens += x.tokens
	t.budget += x.budget
	t.over += x.over
	t.failed += x.failed
	t.prompts += x.prompts
	t.right += x.right
	t.told += x.told
	t.files += x.files
	t.pointer += x.pointer
	t.said += x.said
	t.saidBound += x.saidBound
	t.ends += x.ends
	t.endsBound += x.endsBound
	t.worst = max(t.worst, x.worst)
	t.stale.add(x.stale)
	t.lines.add(x.lines)
}

func (t *tally) scale(by float64) {
	for _, x := range []*float64{&t.needs, &t.direct, &t.bound, &t.strict, &t.lookup, &t.first, &t.tokens, &t.budget, &t.over, &t.failed, &t.prompts, &t.right, &t.told, &t.files,
		&t.pointer, &t.said, &t.saidBound, &t.ends, &t.endsBound, &t.stale.current, &t.stale.old, &t.lines.current, &t.lines.old} {
		*x *= by
	}
}
