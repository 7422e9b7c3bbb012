// Package uncopied reads the messages of a thread without copying them. A thread
// gives everybody else copies; code of this module, which never writes to a
// message of a log, saves that cost.
package uncopied

import (
	"iter"

	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Messages returns the messages in order.
func Messages(t *thread.Thread) []thread.Message { return t.Uncopied(permit.Key{}) }

// At returns the i-th message, counting from 0. It panics if i is out of range.
func At(t *thread.Thread, i int) *thread.Message { return &t.Uncopied(permit.Key{})[i] }

// All iterates over positions and messages.
func All(t *thread.Thread) iter.Seq2[int, *thread.Message] {
	messages := Messages(t)
	return func(yield func(int, *thread.Message) bool) {
		for i := range messages {
			if !yield(i, &messages[i]) {
				return
			}
		}
	}
}
