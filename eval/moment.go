package eval

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// moment is a place where the conversation is compacted, and what the agent
// writes soon after it.
type moment struct {
	*session
	// at: the history is the messages before it. tail is where the part begins
	// that every contender keeps: the last step and what answered it.
	at, tail int
	// size is that of the history, rest that of the tail, in tokens.
	size, rest int
	refs       []need
	// says are the needs of the agent's answers within the horizon, ends those of its
	// calls up to the end of the session.
	says, ends []need
	used       int // how many identifiers were used in the horizon, eligible or not
	// all are the entries of the whole session, for lookups.
	all []recall.Entry
	// recap is the agent's own summary made here, nil where it made none.
	recap *recap
}

// need is an identifier that the agent writes again after the moment.
type need struct {
	*reference
	id   int32
	step int // the index of the step that writes it
	age  int // steps since it was last mentioned
	// ask is the question of a lookup where no step asks it.
	ask string
}

// horizon is how many steps after a moment count.
const horizon = 20

// commonInHistory is the share of the messages of a history beyond which an
// identifier cannot be lost.
const commonInHistory = 0.30

// moment looks at the session before the step of the given index.
func (s *session) moment(step int) *moment {
	m := s.momentTo(step, step+horizon)
	m.says, _ = m.needs(s.says, step, step+horizon)
	m.ends, _ = m.needs(s.uses, step, len(s.steps))
	return m
}

// momentTo is a moment whose horizon ends before the step until.
func (s *session) momentTo(step, until int) *moment {
	m := &moment{session: s, at: s.steps[step], tail: s.steps[max(0, step-1)]}
	for i := range m.at {
		m.size += s.sizes[i]
		if i >= m.tail {
			m.rest += s.sizes[i]
		}
	}
	m.refs, m.used = m.needs(s.uses, step, until)
	return m
}

// needs are the references that the steps use first, up to one step.
func (m *moment) needs(uses [][]int32, step, until int) (all []need, used int) {
	taken := map[int32]bool{}
	for j := step; j < min(until, len(m.steps)); j++ {
		for _, id := range uses[j] {
			if taken[id] {
				continue
			}
			taken[id] = true
			used++
			if age, ok := m.eligible(&m.session.refs[id], m.steps[j], step); ok {
				all = append(all, need{reference: &m.session.refs[id], id: id, step: j, age: age})
			}
		}
	}
	return all, used
}

// eligible reports whether an identifier that is written at position used could
// be known from the old part of the history alone.
func (m *moment) eligible(r *reference, used, step int) (age int, ok bool) {
	if r.origin == "" || r.origin == "system" || len(r.seen) == 0 || r.seen[0].pos >= m.tail {
		return 0, false
	}
	last, count := 0, 0
	for _, s := range r.seen {
		switch {
		case s.pos < m.tail:
			last = s.pos
			count++
		case s.pos < m.at:
			return 0, false
		case s.pos < used && uncopied.At(m.thread, s.pos).Role != thread.Assistant:
			return 0, false
		}
		if s.pos >= used {
			break
		}
	}
	if float64(count) > max(1, commonInHistory*float64(m.tail)) {
		return 0, false
	}
	lastStep, _ := slices.BinarySearch(m.steps, last+1)
	return step - lastStep, true
}

// moments chooses where the session is cut for a setting: evenly among the steps
// with a history of at least four times the budget; a session that never grows
// that long is cut at 25, 50 and 75 percent of its steps.
func (s *session) moments(b setting, at func(step int) *moment) []*moment {
	if b.own {
		return s.compactions(at)
	}
	if b.family == "" && s.total < long {
		return nil
	}
	var grown, enough []int
	size, pos := 0, 0
	for step, at := range s.steps {
		for ; pos < at; pos++ {
			size += s.sizes[pos]
		}
		if step == 0 {
			continue
		}
		budget := b.of(s, size)
		if size >= 4*budget && size >= least && b.family == "" {
			grown = append(grown, step)
		}
		if size >= budget*3/2 {
			enough = append(enough, step)
		}
	}
	steps, n := grown, moments
	if len(grown) == 0 {
		steps, n = enough, 3
	}
	var chosen []*moment
	last := -1
	for i := range n {
		k := (i + 1) * len(steps) / (n + 1)
		if k >= len(steps) || k == last {
			continue
		}
		last = k
		m := at(steps[k])
		// A tail that leaves no room for anything measures nothing.
		if len(m.refs) > 0 && m.rest <= b.of(s, m.size)*3/4 {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// compactions are the moments where the agent itself compacted.
func (s *session) compactions(at func(step int) *moment) []*moment {
	var all []*moment
	for i := range s.recaps {
		step, _ := slices.BinarySearch(s.steps, s.recaps[i].at)
		if step < 1 || step >= len(s.steps) {
			continue
		}
		m := at(step)
		m.recap = &s.recaps[i]
		if len(m.refs) > 0 {
			all = append(all, m)
		}
	}
	return all
}

// ageRange is how many steps ago a reference was last mentioned.
type ageRange struct {
	upTo int
	name string
}

// ages are the strata by steps since the last mention.
var ages = []ageRange{{5, "1-5"}, {10, "6-10"}, {20, "11-20"}, {40, "21-40"}, {1 << 30, "over 40"}}

func (n need) ageName() string {
	for _, a := range ages {
		if n.age <= a.upTo {
			return a.name
		}
	}
	return ""
}

// tooCommon makes the filter by sessions: identifiers that stand in more than
// 30 % of them, and numbers, dates and versions in more than 5 %, tell nothing
// about this one.
func tooCommon(sessions []*session) func(ident.Ident) bool {
	count := map[string]int{}
	for _, s := range sessions {
		for norm := range s.norms {
			count[norm]++
		}
	}
	n := float64(len(sessions))
	return func(x ident.Ident) bool {
		share := 0.30
		switch x.Type {
		case ident.Number, ident.Date, ident.Version:
			share = 0.05
		}
		return float64(count[x.Norm]) > max(1, share*n)
	}
}
