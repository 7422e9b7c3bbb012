// Package learn learns the table of chances of package summarize from recorded
// conversations: how likely the agent is to write an identifier again, by its traits.
package learn

import (
	"context"
	"fmt"
	"math"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/summarize"
)

// Odds is a table of chances: what each bin of each trait of an identifier
// (summarize.Observe) adds to the log-odds that the agent writes it in a call
// within the next 20 steps.
type Odds struct {
	Base float64
	Bins [][]float64
	// Seen counts the identifiers in each bin. Moments, Identifiers and Used say how much
	// the table was learned from.
	Seen                       [][]int
	Moments, Identifiers, Used int
}

const (
	// learnMoments is how many moments of a session are learned from.
	learnMoments = 12
	// shortest is the size in tokens from which a session is learned from.
	shortest = 2_000
	// rounds, rate, shrink and the share of smoothing are those of the fit: AdaGrad
	// (Duchi et al. 2011) over logistic regression.
	rounds = 12
	rate   = 0.15
	shrink = 1e-5
)

// Learn fits the table to the sessions of a split. The same sessions give the same
// table.
func Learn(ctx context.Context, set *references.Set, split references.Split) (*Odds, error) {
	var all []sample
	o := &Odds{}
	for _, s := range set.OfSplit(split, shortest) {
		for n := range learnMoments {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("learn.Learn: %w", err)
			}
			step := (n + 1) * len(s.Steps) / (learnMoments + 1)
			if step < 1 || n > 0 && step == n*len(s.Steps)/(learnMoments+1) {
				continue
			}
			all = append(all, samples(s.Moment(step))...)
			o.Moments++
		}
	}
	o.fit(all)
	return o, nil
}

// sample is an identifier at a moment, and whether it was used soon.
type sample struct {
	bins []uint8
	used bool
}

func samples(m *references.Moment) []sample {
	used := map[string]bool{}
	for _, n := range m.Needs {
		used[n.Norm] = true
	}
	messages := m.Thread.Messages()
	var out []sample
	for _, t := range summarize.Observe(summarize.Input{Messages: messages[:m.Tail], Context: messages[m.Tail:m.At]}) {
		out = append(out, sample{t.Bins, used[t.Name]})
	}
	return out
}

func (o *Odds) fit(all []sample) {
	var square [][]float64
	for _, s := range all {
		for trait, bin := range s.bins {
			if trait == len(o.Bins) {
				o.Bins, o.Seen, square = append(o.Bins, nil), append(o.Seen, nil), append(square, nil)
			}
			for int(bin) >= len(o.Bins[trait]) {
				o.Bins[trait], o.Seen[trait], square[trait] = append(o.Bins[trait], 0), append(o.Seen[trait], 0), append(square[trait], 0)
			}
			o.Seen[trait][bin]++
		}
		o.Identifiers++
		if s.used {
			o.Used++
		}
	}
	o.Base = math.Log(float64(o.Used+1) / float64(o.Identifiers+1))
	baseSquare := 0.0
	for range rounds {
		for _, s := range all {
			odds := o.Base
			for trait, bin := range s.bins {
				odds += o.Bins[trait][bin]
			}
			slope := 1 / (1 + math.Exp(-odds))
			if s.used {
				slope--
			}
			baseSquare = descend(&o.Base, baseSquare, slope)
			for trait, bin := range s.bins {
				square[trait][bin] = descend(&o.Bins[trait][bin], square[trait][bin], slope)
			}
		}
	}
	// What a trait adds on average belongs to the base.
	for trait, bins := range o.Bins {
		mean := 0.0
		for bin, x := range bins {
			mean += x * float64(o.Seen[trait][bin]) / float64(o.Identifiers)
		}
		for bin := range bins {
			bins[bin] -= mean
		}
		o.Base += mean
	}
}

func descend(x *float64, square, slope float64) float64 {
	slope += shrink * *x
	square += slope * slope
	*x -= rate * slope / math.Sqrt(square+1e-3)
	return square
}
