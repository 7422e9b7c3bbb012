package event

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Counters is a sink that adds up what events measure (see Metrics). The zero value is ready to use; it is
// safe for concurrent use and must not be copied.
type Counters struct {
	mu   sync.Mutex
	sums map[*Metric]map[string]*Figure
}

// Figure is the sum of a metric for some values of its labels, since the counters were made.
type Figure struct {
	Metric *Metric `json:"-"`
	Name   string  `json:"name"`
	// Labels are the values in the order of the metric's labels.
	Labels []string `json:"labels,omitempty"`
	// Sum is in the metric's unit.
	Sum float64 `json:"sum"`
	// Counts are those of a histogram, not cumulative: one for each of the metric's bounds, and one for what is
	// above them.
	Counts []int64 `json:"counts,omitempty"`
}

// Figures are sums of metrics at one moment.
type Figures []Figure

// maxFigures bounds how many figures a metric has, because callers choose names. What comes later is counted
// under "other".
const maxFigures = 128

// Emit implements Sink.
func (c *Counters) Emit(_ context.Context, e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range metrics {
		m.Measure(e, func(n float64, labels []string) { c.figure(m, labels).add(n) })
	}
}

func (c *Counters) figure(m *Metric, labels []string) *Figure {
	figures := c.sums[m]
	if figures == nil {
		if c.sums == nil {
			c.sums = map[*Metric]map[string]*Figure{}
		}
		figures = map[string]*Figure{}
		c.sums[m] = figures
	}
	key := strings.Join(labels, "\n") // names have no line breaks
	f := figures[key]
	if f == nil && len(figures) >= maxFigures {
		labels = slices.Repeat([]string{"other"}, len(labels))
		key = strings.Join(labels, "\n")
		f = figures[key]
	}
	if f == nil {
		f = &Figure{Metric: m, Name: m.Name, Labels: labels}
		if m.Bounds != nil {
			f.Counts = make([]int64, len(m.Bounds)+1)
		}
		figures[key] = f
	}
	return f
}

func (f *Figure) add(n float64) {
	f.Sum += n
	if f.Counts != nil {
		i, _ := slices.BinarySearch(f.Metric.Bounds, n)
		f.Counts[i]++
	}
}

// Figures returns the current sums by name and labels. A counter without labels is there before it has counted.
func (c *Counters) Figures() Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all Figures
	for _, m := range metrics {
		if m.Labels == nil {
			c.figure(m, nil)
		}
		for _, key := range slices.Sorted(maps.Keys(c.sums[m])) {
			f := *c.sums[m][key]
			f.Counts = slices.Clone(f.Counts)
			all = append(all, f)
		}
	}
	return all
}

// Sum adds up all figures of a metric.
func (f Figures) Sum(metric string) (sum float64) {
	for _, one := range f {
		if one.Name == metric {
			sum += one.Sum
		}
	}
	return sum
}

// By adds up the figures of a counter by the values of a label. The map is empty if the metric does not have it.
func (f Figures) By(metric, label string) map[string]int {
	sums := map[string]int{}
	for _, one := range f {
		if i := slices.Index(one.Metric.Labels, label); one.Name == metric && i >= 0 {
			sums[one.Labels[i]] += int(one.Sum)
		}
	}
	return sums
}
