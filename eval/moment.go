package eval

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/eval/ident"
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
	used       int // how many identifiers were used in the horizon, eligible or not
	search     *searches
	// recap is the agent's own summary made here, nil where it made none.
	recap *recap
}

// need is an identifier that the agent writes again after the moment.
type need struct {
	*reference
	id   int32
	step int // the index of the step that writes it
	age  int // steps since it was last mentioned
}

// horizon is how many steps after a moment count.
const horizon = 20

// commonInHistory is the share of the messages of a history beyond which an
// identifier cannot be lost.
const commonInHistory = 0.30

// moment looks at the session before the step of the given index.
func (s *session) moment(step int) *moment {
	m := &moment{session: s, at: s.steps[step], tail: s.steps[step-1], search: &searches{known: map[int][]hit{}}}
	for i := range m.at {
		m.size += s.sizes[i]
		if i >= m.tail {
			m.rest += s.sizes[i]
		}
	}
	taken := map[int32]bool{}
	for j := step; j < min(step+horizon, len(s.steps)); j++ {
		for _, id := range s.uses[j] {
			if taken[id] {
				continue
			}
			taken[id] = true
			m.used++
			if age, ok := m.eligible(&s.refs[id], s.steps[j], step); ok {
				m.refs = append(m.refs, need{&s.refs[id], id, j, age})
			}
		}
	}
	return m
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
		case s.pos < used && m.thread.At(s.pos).Role != thread.Assistant:
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

// Ages are the strata by steps since the last mention.
var ages = []struct {
	upTo int
	name string
}{{5, "1-5"}, {10, "6-10"}, {20, "11-20"}, {40, "21-40"}, {1 << 30, "over 40"}}

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
