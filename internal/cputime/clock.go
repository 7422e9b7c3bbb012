// Package cputime measures benchmarks by the time that processors spent on them:
// what else a machine does in the meantime does not count, waiting neither.
package cputime

import (
	"testing"
	"time"
)

// Unit is the unit of Report.
const Unit = "cpu-ns/op"

// Clock sums the processor time of the whole process, garbage collection
// included, while it runs. The zero value stands at 0.
type Clock struct {
	sum, since time.Duration
	running    bool
}

// Start lets it run.
func (c *Clock) Start() { c.since, c.running = now(), true }

// Stop halts it.
func (c *Clock) Stop() {
	if c.running {
		c.sum += now() - c.since
		c.running = false
	}
}

// Report halts it and adds what an iteration took to the benchmark's figures.
func (c *Clock) Report(b *testing.B) {
	c.Stop()
	b.ReportMetric(float64(c.sum.Nanoseconds())/float64(max(1, b.N)), Unit)
}
