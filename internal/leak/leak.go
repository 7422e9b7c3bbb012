// Package leak finds goroutines that tests have left behind.
package leak

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// maxLooks is how often Find looks, each time for about half a second: on a busy machine
// it takes a while until a goroutine has seen that it is over.
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

// Main runs the tests of a package, closes what they share, and looks for what they
// have left. It returns the status to exit with.
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
