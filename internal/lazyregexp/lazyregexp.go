// Package lazyregexp compiles regular expressions on first use. A run of the program uses few of them, and
// compiling all would slow its start.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. It is safe for concurrent use, and panics
// on its first call if the expression is invalid.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
