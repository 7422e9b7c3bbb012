package references

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Moment is a place where the conversation is compacted, with what the agent writes
// after it.
type Moment struct {
	*Session
	// At is where the history ends: it is the messages before this position. Tail is
	// where the part begins that every contender keeps: the last step and its results.
	At, Tail int
	// Size is that of the history, Rest that of the tail, in tokens.
	Size, Rest int
	// Needs are what the agent's calls refer to within the horizon, Said the same of its
	// answers, and ToEnd of all its later calls.
	Needs, Said, ToEnd []Need
	// Used counts the identifiers of the calls within the horizon, eligible or not.
	Used int
	// Entries are all messages of the session, for lookups.
	Entries []recall.Entry
	// Recap is the summary that the agent itself wrote here; nil for none.
	Recap *Recap
}

// Need is a reference that the agent needs after the moment.
type Need struct {
	*Reference
	ID   int32 // of the reference, in the session
	Step int   // the step that writes it
	Age  int   // steps since it was last mentioned
	// Ask is the question of a lookup where no step asks it.
	Ask string
}

// Horizon is how many steps after a moment count for its needs.
const Horizon = 20

// commonInHistory is the share of the messages of a history above which an identifier is
// too common to be lost.
const commonInHistory = 0.30

// Moment is the moment before a step.
func (s *Session) Moment(step int) *Moment {
	m := s.MomentTo(step, step+Horizon)
	m.Said, _ = m.needs(s.says, step, step+Horizon)
	m.ToEnd, _ = m.needs(s.Uses, step, len(s.Steps))
	return m
}

// MomentTo is the moment before a step, with the calls up to another step as its horizon.
// It has no Said and ToEnd.
func (s *Session) MomentTo(step, until int) *Moment {
	m := &Moment{Session: s, At: s.Steps[step], Tail: s.Steps[max(0, step-1)]}
	for i := range m.At {
		m.Size += s.Sizes[i]
		if i >= m.Tail {
			m.Rest += s.Sizes[i]
		}
	}
	m.Needs, m.Used = m.needs(s.Uses, step, until)
	return m
}

// needs are the references whose first use after the moment is before the step until.
func (m *Moment) needs(uses [][]int32, step, until int) (all []Need, used int) {
	taken := map[int32]bool{}
	for j := step; j < min(until, len(m.Steps)); j++ {
		for _, id := range uses[j] {
			if taken[id] {
				continue
			}
			taken[id] = true
			used++
			if age, ok := m.isEligible(&m.Session.Refs[id], m.Steps[j], step); ok {
				all = append(all, Need{Reference: &m.Session.Refs[id], ID: id, Step: j, Age: age})
			}
		}
	}
	return all, used
}

// isEligible reports whether an identifier that the agent writes at position used could
// be known only from the part of the history before the tail.
func (m *Moment) isEligible(r *Reference, used, step int) (age int, ok bool) {
	if r.Origin == "" || r.Origin == "system" || len(r.Seen) == 0 || r.Seen[0].Pos >= m.Tail {
		return 0, false
	}
	last, count := 0, 0
	for _, s := range r.Seen {
		switch {
		case s.Pos < m.Tail:
			last = s.Pos
			count++
		case s.Pos < m.At:
			return 0, false
		case s.Pos < used && m.Thread.At(s.Pos).Role != thread.Assistant:
			return 0, false
		}
		if s.Pos >= used {
			break
		}
	}
	if float64(count) > max(1, commonInHistory*float64(m.Tail)) {
		return 0, false
	}
	lastStep, _ := slices.BinarySearch(m.Steps, last+1)
	return step - lastStep, true
}

// AgeRange is a range of steps since the last mention of a reference.
type AgeRange struct {
	upTo int
	Name string
}

// Ages are the age ranges of reports.
var Ages = []AgeRange{{5, "1-5"}, {10, "6-10"}, {20, "11-20"}, {40, "21-40"}, {1 << 30, "over 40"}}

// AgeName is the name of the range that the need's age is in.
func (n Need) AgeName() string {
	for _, a := range Ages {
		if n.Age <= a.upTo {
			return a.Name
		}
	}
	return ""
}
