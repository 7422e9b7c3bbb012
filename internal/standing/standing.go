// Package standing ranks what a person said by how likely it still stands: rules, bans,
// preferences, decisions, and what takes one of these back; as against requests, questions,
// facts, reports, talk, and the rules of others. It also tells whether a later sentence
// changes an earlier one. Both are linear models over hashed features with integer weights, so
// a sentence has the same score on every machine. It ranks and does not filter: fill the room
// there is in order of score. All of it is pure and may be used by many goroutines at once.
package standing

import (
	_ "embed"
	"math"
)

// Version names the features and the checksum of the table: a part of the keys of whatever is
// cached by scores.
const Version = "2-774f3fdd"

// Scores of clauses of people whose sentences the table was not learned from.
const (
	// Rule is the score from which a clause may be called a rule of the person: of the clauses of
	// six chats in which one in twelve stands, .85 of what is above it does. Little of what stands is.
	Rule = 230
	// Least is the score from which a clause may be listed at all: nearly all of what stands has it.
	Least = -300
)

// Score is how likely a clause stands: the higher, the more likely. It is 100 for each unit of
// log-odds among the clauses that the table was learned from, of which about half stand: where
// fewer do, it promises too much. Its work is bounded.
func Score(c Clause) int { return learned.Score(c, Stands) }

// Table is a learned table: numbers of 32 bits each, the lowest byte first, then a weight of
// 8 bits for each feature and output, then how rare words are. It is not changed. The numbers
// are for each output what its scores begin with and a scale for each group, then what the
// score of a change is made of.
type Table string

//go:embed table.bin
var learned Table

// Outputs of a table.
const (
	// Stands is whether a clause stands.
	Stands = iota
	// Revokes is whether it changes or takes back something that stood. Its table is smaller:
	// features that lie together share a weight.
	Revokes
	Outputs
)

// Sizes of a table.
const (
	Numbers = Outputs*(1+Groups) + Facts + 1
	// Shared is how many features share a weight of each output, as a power of two.
	sharedByRevokes = 3
	// Rare is how many numbers tell how rare words are.
	Rare = 1 << 15
	// Size is the size of a table in bytes.
	Size = 4*Numbers + Weights + Weights>>sharedByRevokes + Rare
	// Fraction is how many bits of a scale are behind the point.
	Fraction = 16
)

// Learned is the table of this package.
func Learned() Table { return learned }

// WeightAt is where in a table the weight of a feature is.
func WeightAt(output int, weight uint32) int {
	if output == Stands {
		return 4*Numbers + int(weight)
	}
	return 4*Numbers + Weights + int(weight>>sharedByRevokes)
}

// Score is the score of a clause by an output of a table.
func (t Table) Score(c Clause, output int) int { return t.scores(c, output, output+1)[output] }

// scores are the scores of a clause by the outputs between two.
func (t Table) scores(c Clause, from, to int) (scores [Outputs]int) {
	var sums [Outputs][Groups]int64
	var counts [Groups]int64
	c.Features(func(group int, weight uint32) {
		for output := from; output < to; output++ {
			sums[output][group] += int64(int8(t[WeightAt(output, weight)]))
		}
		counts[group]++
	})
	for output := from; output < to; output++ {
		at := output * (1 + Groups)
		score := t.number(at)
		for group, n := range counts {
			if n > 0 {
				score += sums[output][group] * t.number(at+1+group) << 8 / int64(math.Sqrt(float64(n<<16)))
			}
		}
		scores[output] = int(score >> Fraction)
	}
	return scores
}

// number is one of the numbers that a table begins with.
func (t Table) number(at int) int64 {
	at *= 4
	return int64(int32(uint32(t[at]) | uint32(t[at+1])<<8 | uint32(t[at+2])<<16 | uint32(t[at+3])<<24))
}

// Best returns the clause of a message that has the highest score, and that score, which is
// the message's. A message without clauses has the lowest score of all.
func (t Table) Best(message, before string) (best Clause, score int) {
	score = math.MinInt
	for _, c := range Clauses(message, before) {
		if found := t.Score(c, Stands); found > score {
			best, score = c, found
		}
	}
	return best, score
}
