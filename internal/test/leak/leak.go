// Package leak finds goroutines that tests have left behind.
package leak

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// maxLooks is how often Find looks, for about half a second each time: on a busy machine goroutines take a
// while to end.
const maxLooks = 60

// Find returns an error with the stacks of goroutines that do not end.
func Find() (err error) {
	for range maxLooks {
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}

// Main runs the tests of a package, closes what they share, and looks for leaked goroutines. It returns the
// exit status.
func Main(m *testing.M, shared ...func()) int {
	status := m.Run()
	for _, closes := range shared {
		closes()
	}
	if status != 0 {
		return status
	}
	if err := Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
