// Package uncopied reads the messages of a thread without copying them. Everybody else
// gets copies; code of this module, which never writes to a message of a log, saves that
// cost.
package uncopied

import "iter"

// Key is an argument of methods whose results must not be written to. Code outside this
// module cannot import the package, and so cannot call them.
type Key struct{ _ struct{} }

// A log is a *thread.Thread, and M its message. The functions do not name these types,
// because package thread imports this one for its Key.
type log[M any] interface{ Uncopied(Key) []M }

// Messages returns the messages in order.
func Messages[M any](t log[M]) []M { return t.Uncopied(Key{}) }

// At returns the i-th message, counting from 0. It panics if i is out of range.
func At[M any](t log[M], i int) *M { return &t.Uncopied(Key{})[i] }

// All iterates over positions and messages.
func All[M any](t log[M]) iter.Seq2[int, *M] {
	messages := Messages(t)
	return func(yield func(int, *M) bool) {
		for i := range messages {
			if !yield(i, &messages[i]) {
				return
			}
		}
	}
}
