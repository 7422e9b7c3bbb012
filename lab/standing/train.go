package standing

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/standing"
)

// How the table is fitted: logistic regression by AdaGrad (Duchi et al. 2011), the mean of the
// weights of the second half of the rounds, over features that are scaled by how differently
// they occur in what stands and what does not (the ratios of Wang and Manning 2012, "Baselines
// and Bigrams").
const (
	rounds = 20
	rate   = 0.1
	shrink = 1e-3
	smooth = 1.0
	// unit is a score for each unit of log-odds.
	unit = 100
)

// scales weigh the groups of features against each other, in the order of their constants.
var scales = [standing.Groups]float64{1, 1, 1, .6, 1.5, 5}

// example is a clause as features. Its values already hold the scale of their group.
type example struct {
	weights []uint32
	groups  []uint8
	values  []float64
	sign    float64 // 1 it is so, -1 it is not
}

func exampleOf(c standing.Clause, output int, is bool) example {
	e := example{sign: -1}
	if is {
		e.sign = 1
	}
	var counts [standing.Groups]int
	first := standing.WeightAt(output, 0)
	c.Features(func(group int, weight uint32) {
		e.weights, e.groups = append(e.weights, uint32(standing.WeightAt(output, weight)-first)), append(e.groups, uint8(group))
		counts[group]++
	})
	e.values = make([]float64, len(e.weights))
	for i, group := range e.groups {
		e.values[i] = scales[group] / math.Sqrt(float64(counts[group]))
	}
	return e
}

// Train fits a table to sentences and to pairs of an earlier and a later one. The same in the
// same order give the same table on every machine.
func Train(all []Labelled, pairs []Pair) standing.Table {
	first := newTable()
	var whole []example
	for _, l := range all {
		whole = append(whole, exampleOf(standing.Clause{Text: l.Text, Before: l.Before}, standing.Stands, l.Stands))
	}
	first.fit(whole, standing.Stands)
	clauses := clausesOf(all, standing.Table(first))
	examples := func(output int) (out []example) {
		for _, c := range clauses {
			out = append(out, exampleOf(c.Clause, output, output == standing.Stands && c.stands || c.kind == 'V'))
		}
		return out
	}
	t := newTable()
	t.fit(examples(standing.Stands), standing.Stands)
	t.countWords(all)
	// What changes are made of is learned while the pairs are new to the rest of the table.
	t.fit(examples(standing.Revokes), standing.Revokes)
	t.fitChanges(pairs)
	revokes := examples(standing.Revokes)
	for _, p := range pairs {
		revokes = append(revokes, exampleOf(standing.Clause{Text: p.Later}, standing.Revokes, p.Changes))
	}
	t.fit(revokes, standing.Revokes)
	return standing.Table(t)
}

type labelledClause struct {
	standing.Clause
	stands bool
	kind   byte
}

// clausesOf is the clauses that are learned from. Of a sentence of several clauses that
// stands, the clause that stands is not known: it is the highest by a first table, made of
// whole sentences. Every other sentence is learned from as a part of a message as well, where
// its first letter and its end may be otherwise: this helps long messages.
func clausesOf(all []Labelled, first standing.Table) []labelledClause {
	random := rand.New(rand.NewPCG(1, 7))
	var out []labelledClause
	for _, l := range all {
		best, _ := first.Best(l.Text, l.Before)
		found := standing.Clauses(l.Text, l.Before)
		for _, c := range found {
			if l.Stands && c != best {
				continue
			}
			out = append(out, labelledClause{c, l.Stands, l.Kind})
			if len(found) == 1 && c.Before == "" && random.IntN(2) == 0 {
				c.Text = restyled(c.Text, random)
				c.Count = 2 + random.IntN(5)
				c.Index = random.IntN(c.Count)
				out = append(out, labelledClause{c, l.Stands, l.Kind})
			}
		}
	}
	return out
}

// restyled changes the case of the first letter, and adds or removes a full stop, half of the
// time each.
func restyled(s string, random *rand.Rand) string {
	first, size := utf8.DecodeRuneInString(s)
	if random.IntN(2) == 0 {
		other := unicode.ToLower(first)
		if other == first {
			other = unicode.ToUpper(first)
		}
		s = string(other) + s[size:]
	}
	if random.IntN(2) == 0 {
		last, _ := utf8.DecodeLastRuneInString(s)
		if last == '.' {
			s = s[:len(s)-1]
		} else if unicode.IsLetter(last) {
			s += "."
		}
	}
	return s
}

// table is a table that is being written.
type table []byte

func newTable() table { return make(table, standing.Size) }

func (t table) setNumber(at int, x float64) {
	binary.LittleEndian.PutUint32(t[4*at:], uint32(int32(math.Round(x*(1<<standing.Fraction)))))
}

// fit learns an output.
func (t table) fit(all []example, output int) {
	size := standing.WeightAt(output, standing.Weights) - standing.WeightAt(output, 0)
	ratios := ratiosOf(all, size)
	groups := make([]uint8, size)
	for _, e := range all {
		for i, w := range e.weights {
			e.values[i] *= ratios[w]
			groups[w] = e.groups[i]
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	weights, squares, sums := make([]float64, size), make([]float64, size), make([]float64, size)
	var base, baseSquare, baseSum float64
	order := random.Perm(len(all))
	for round := range rounds {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, at := range order {
			e := &all[at]
			odds := base
			for i, w := range e.weights {
				odds += float64(weights[w] * e.values[i])
			}
			slope := -e.sign / (1 + exp(e.sign*odds))
			descend(&base, &baseSquare, slope)
			for i, w := range e.weights {
				if e.values[i] != 0 {
					descend(&weights[w], &squares[w], float64(slope*e.values[i])+float64(shrink*weights[w]))
				}
			}
		}
		if 2*round >= rounds {
			for w := range sums {
				sums[w] += weights[w]
			}
			baseSum += base
		}
	}
	half := float64(rounds - (rounds+1)/2)
	var most [standing.Groups]float64
	for w := range sums {
		sums[w] *= ratios[w] / half
		most[groups[w]] = max(most[groups[w]], math.Abs(sums[w]))
	}
	at := output * (1 + standing.Groups)
	t.setNumber(at, baseSum/half*unit)
	for group, most := range most {
		t.setNumber(at+1+group, most/127*scales[group]*unit)
	}
	for w, x := range sums {
		if most := most[groups[w]]; most > 0 {
			x = math.Round(x / most * 127)
		}
		t[standing.WeightAt(output, 0)+w] = byte(int8(x))
	}
}

// countWords says how rare words are: 16 for each time that halving the sentences leaves
// those with the word.
func (t table) countWords(all []Labelled) {
	counts := make([]int, standing.Rare)
	for _, l := range all {
		for _, stem := range standing.Stems(l.Text) {
			counts[standing.RareAt(stem)-standing.RareAt(0)]++
		}
	}
	for i, n := range counts {
		share := uint64(len(all) / max(n, 1))
		t[standing.RareAt(0)+i] = byte(min(255, 8*bits.Len64(share*share)))
	}
}

// descend takes one step of AdaGrad. Conversions to float64 keep a compiler from joining a
// product and a sum, which would round otherwise on some machines.
func descend(weight, square *float64, slope float64) {
	*square += float64(slope * slope)
	*weight -= float64(rate * slope / math.Sqrt(*square+1e-4))
}

// ratiosOf is, for each weight, how differently its features occur in what stands and in what
// does not: 2(p-q)/(p+q), which near 0 is the logarithm of p/q.
func ratiosOf(all []example, size int) []float64 {
	stand, fall := make([]float64, size), make([]float64, size)
	var stands, falls float64
	for _, e := range all {
		in, total := fall, &falls
		if e.sign > 0 {
			in, total = stand, &stands
		}
		for _, w := range e.weights {
			in[w]++
		}
		*total += float64(len(e.weights))
	}
	ratios := make([]float64, size)
	for w := range ratios {
		p, q := float64((stand[w]+smooth)*(falls/stands)), fall[w]+smooth
		ratios[w] = math.Sqrt(2 * math.Abs(p-q) / (p + q))
	}
	return ratios
}

// exp is e^x to five digits, from sums and products alone: that of the standard library has
// other last bits on other machines.
func exp(x float64) float64 {
	y := 1 + float64(min(max(x, -30), 30)/(1<<20))
	for range 20 {
		y *= y
	}
	return y
}
