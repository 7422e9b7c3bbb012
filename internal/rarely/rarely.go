// Package rarely has tests collect garbage less often.
package rarely

import (
	"flag"
	"os"
	"runtime/debug"
)

// Collect is called before the tests of a package that make much and keep little: it saves
// them about a twentieth of their time. Benchmarks measure what everybody gets, and GOGC
// in the environment stays as it is.
func Collect() {
	flag.Parse()
	bench := flag.Lookup("test.bench")
	if os.Getenv("GOGC") == "" && (bench == nil || bench.Value.String() == "") {
		debug.SetGCPercent(300)
	}
}
