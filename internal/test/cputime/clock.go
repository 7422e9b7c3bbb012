// Package cputime measures benchmarks by CPU time: neither waiting nor other processes count.
package cputime

import (
	"testing"
	"time"
)

// Unit is the unit of Report.
const Unit = "cpu-ns/op"

// Clock measures the CPU time of the whole process, including garbage collection, while it runs. The zero value
// is 0.
type Clock struct {
	sum, since time.Duration
	running    bool
}

// Start starts the clock.
func (c *Clock) Start() { c.since, c.running = now(), true }

// Stop stops the clock.
func (c *Clock) Stop() {
	if c.running {
		c.sum += now() - c.since
		c.running = false
	}
}

// Report stops the clock and reports the CPU time of an iteration.
func (c *Clock) Report(b *testing.B) {
	c.Stop()
	b.ReportMetric(float64(c.sum.Nanoseconds())/float64(max(1, b.N)), Unit)
}
