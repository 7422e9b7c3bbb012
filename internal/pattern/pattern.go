// Package pattern compiles regular expressions when they are first asked for. A run of
// the program asks for few, and each takes longer to compile than a flag to read.
package pattern

import (
	"regexp"
	"sync"
)

// New returns what gives the compiled expression, the same at each call. It is safe for
// concurrent use, and panics at its first call where the expression is not valid.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
