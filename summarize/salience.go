package summarize

import (
	"math"
	"slices"
)

// traits are what the chance of an identifier is taken from: for each trait of
// the table, the bin it falls into.
type traits [traitCount]uint8

const (
	traitKind = iota
	traitAge
	traitMessages
	traitCalls
	traitUser
	traitWords
	traitSource
	traitNear
	traitCount
)

// The upper ends of the bins; what is beyond the last is in a bin of its own.
var (
	ageBins     = []int{1, 2, 3, 5, 8, 13, 21, 40}
	messageBins = []int{1, 2, 3, 5, 9}
	callBins    = []int{0, 1, 2}
	nearBins    = []int{0, 1, 2, 4, 8, 16, 32, 900}
)

func bin(x int, ends []int) uint8 {
	for i, end := range ends {
		if x <= end {
			return uint8(i)
		}
	}
	return uint8(len(ends))
}

func flag(is bool) uint8 {
	if is {
		return 1
	}
	return 0
}

func (st *stat) traits(steps []int) traits {
	return traits{
		traitKind:     uint8(st.kind),
		traitAge:      bin(steps[st.last], ageBins),
		traitMessages: bin(int(st.messages), messageBins),
		traitCalls:    bin(int(st.calls), callBins),
		traitUser:     flag(st.user),
		traitWords:    flag(st.words),
		traitSource:   uint8(st.source),
		traitNear:     bin(int(st.near), nearBins),
	}
}

// chance is how likely the agent is to write an identifier in the calls of its
// next 20 steps, from 0 to 1, by the learned table.
func chance(t traits) float32 {
	odds := salience.base
	for trait, bin := range t {
		odds += salience.odds[trait][bin]
	}
	return float32(1 / (1 + math.Exp(-float64(odds))))
}

// Traits are what the summarizer knows of an identifier, as the bins of its table
// of chances. They are what the table is learned from (package eval).
type Traits struct {
	Name string
	Bins []uint8
}

// Observe returns the traits of every identifier of the messages that the context
// does not hold too, in the order of their first mention.
func Observe(in Input) []Traits {
	var n names
	facts := make([]*facts, len(in.Messages))
	for i := range in.Messages {
		facts[i] = read(&in.Messages[i])
	}
	n.learn(&in, facts, read)
	steps := stepsBack(&in)
	all := make([]Traits, len(n.stats))
	for name, id := range n.id {
		bins := n.stats[id].traits(steps)
		all[id] = Traits{name, bins[:]}
	}
	id := -1
	return slices.DeleteFunc(all, func(Traits) bool { id++; return n.stats[id].inContext })
}
