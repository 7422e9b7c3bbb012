// Package crash names the places of a write where tests end the process, to see
// what is left. Where the environment does not ask for it a place is nothing.
package crash

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Variable is the environment variable that names a place: "NAME/N" kills the
// process when it comes there for the N-th time. All writes the name of each
// place to standard error when the process first comes there.
const (
	Variable = "PALIMPSEST_CRASH_AT"
	All      = "all"
)

// Prefix begins the lines that All writes.
const Prefix = "crash point: "

// Point is a place. Names are "operation: what has just been done".
func Point(name string) {
	if reached := asked(); reached != nil {
		reached(name)
	}
}

// asked reads the environment once; nil asks for nothing.
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

// killer ends the process as power would: nothing is flushed, nothing deferred.
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
		select {} // until the signal has come
	}
}
