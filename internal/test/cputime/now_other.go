//go:build !unix

package cputime

import "time"

var start = time.Now()

// now is the time on the clock where a system tells no other.
func now() time.Duration { return time.Since(start) }
