// Package crash marks places in writes where tests kill the process, to see what is left. Outside these tests
// a place does nothing.
package crash

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Variable is the environment variable that selects a place: "NAME/N" kills the process when it reaches the
// place for the N-th time. All prints the name of each place to standard error when it is first reached.
const (
	Variable = "PALIMPSEST_CRASH_AT"
	All      = "all"
)

// Prefix begins the lines that All prints.
const Prefix = "crash point: "

// Point marks a place. Names are "operation: what has just been done".
func Point(name string) {
	if reached := asked(); reached != nil {
		reached(name)
	}
}

// asked reads the environment once; nil if the variable is not set.
var asked = sync.OnceValue(func() func(string) {
	switch value := os.Getenv(Variable); value {
	case "":
		return nil
	case All:
		var seen sync.Map
		return func(name string) {
			if _, before := seen.LoadOrStore(name, true); !before {
				fmt.Fprintln(os.Stderr, Prefix+name)
			}
		}
	default:
		name, times, _ := strings.Cut(value, "/")
		n, err := strconv.ParseInt(times, 10, 64)
		if err != nil {
			n = 1
		}
		return killer(name, n)
	}
})

// killer kills the process as a power failure would: nothing is flushed, nothing deferred runs.
func killer(wanted string, after int64) func(string) {
	var passed atomic.Int64
	return func(name string) {
		if name != wanted || passed.Add(1) != after {
			return
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			os.Exit(137)
		}
		select {} // until the signal arrives
	}
}
