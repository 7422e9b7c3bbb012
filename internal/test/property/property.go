// Package property runs property tests from a fixed seed: each run of go test
// draws the same cases, on every machine. Other cases come from another seed,
// for all packages at once:
//
//	RAPID_SEED=1234 go test -count=1 ./...
//
// The flag -rapid.seed does the same for one package. .ci/run tries new seeds in
// a stage of its own. A case that has failed becomes a plain test, since a seed
// stands for it only as long as nobody changes what is drawn.
package property

import (
	"flag"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// fixed is the seed where none is given. Rapid takes 0 for "any".
const fixed = 1

// seed settles the seed once, before the first case is drawn: rapid reads its
// flag without a lock.
var seed = sync.OnceValue(func() uint64 {
	// Rapid has read the variable before the tests began. It is read again so
	// that go test does not answer for one seed with what it keeps of another.
	os.Getenv("RAPID_SEED")
	f := flag.Lookup("rapid.seed")
	n, err := strconv.ParseUint(f.Value.String(), 0, 64)
	if err == nil && n == 0 {
		n = fixed
		err = f.Value.Set(strconv.Itoa(fixed))
	}
	if err != nil {
		panic("property: the flag -rapid.seed is not as rapid has it: " + err.Error())
	}
	return n
})

// Check is rapid.Check from the seed.
func Check(t rapid.TB, prop func(*rapid.T)) {
	t.Helper()
	seed()
	rapid.Check(t, prop)
}

// Few is Check with at most n cases, for a property whose cases take long. Where a
// seed or a number of cases is given, as .ci/seeds gives both, all are tried.
func Few(t rapid.TB, n int, prop func(*rapid.T)) {
	t.Helper()
	if os.Getenv("RAPID_SEED") != "" || os.Getenv("RAPID_CHECKS") != "" {
		Check(t, prop)
		return
	}
	tried, failed := 0, false
	Check(t, func(rt *rapid.T) {
		// A case that fails is tried again, and then made smaller.
		if tried++; tried > n && !failed {
			return
		}
		done := false
		defer func() { failed = failed || !done || rt.Failed() }()
		prop(rt)
		done = true
	})
}

// Test returns Check of the property as a test, for t.Run.
func Test(prop func(*rapid.T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		Check(t, prop)
	}
}

// Seed is for tests that draw with math/rand.
func Seed() uint64 { return seed() }
