package eval

import (
	"math/rand/v2"
	"slices"
)

// Interval is a mean and its 95 percent interval.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// MeanOf is the mean of values and its interval, by 10,000 resamplings with a fixed
// seed.
func MeanOf(x []float64) Interval {
	low, high := newBootstrap(len(x)).interval(x)
	return Interval{mean(x), low, high}
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(1, len(x)))
}

// resamples is how often the sessions are drawn for an interval.
const resamples = 10_000

// bootstrap draws sessions with replacement, the same draws for every contender.
type bootstrap struct{ draws [][]int32 }

func newBootstrap(n int) *bootstrap {
	rng := rand.New(rand.NewPCG(7, 11))
	b := &bootstrap{draws: make([][]int32, resamples)}
	for i := range b.draws {
		b.draws[i] = make([]int32, n)
		for k := range n {
			b.draws[i][k] = int32(rng.IntN(n))
		}
	}
	return b
}

// interval is the 95 percent interval of the mean.
func (b *bootstrap) interval(x []float64) (low, high float64) {
	means := make([]float64, len(b.draws))
	for i, draw := range b.draws {
		sum := 0.0
		for _, k := range draw {
			sum += x[k]
		}
		means[i] = sum / float64(max(1, len(draw)))
	}
	slices.Sort(means)
	return means[len(means)*25/1000], means[len(means)*975/1000]
}

// difference is the mean difference of two contenders over the same sessions.
func (b *bootstrap) difference(x, y []float64) Interval {
	diff := make([]float64, len(x))
	for i := range x {
		diff[i] = x[i] - y[i]
	}
	d := Interval{Mean: mean(diff)}
	d.Low, d.High = b.interval(diff)
	return d
}
