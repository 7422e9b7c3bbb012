package thread

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
)

var (
	// ErrDuplicateID is wrapped by errors about a message id that the thread already has.
	ErrDuplicateID = errors.New("message id is already in the thread")
	// ErrUnknownID is wrapped by errors about a message id that the thread does not have.
	ErrUnknownID = errors.New("message id is not in the thread")
)

// Thread is an append-only log of messages. A Thread never changes: Append returns a new one,
// which shares the messages of the old. Append copies what it gets; what methods return is the log
// itself, and nobody writes to it. Own makes copies that can be changed. The zero value is not usable; start with New.
type Thread struct {
	id       string
	turn     int
	messages []Message // never written to; the array is that of the log
	log      *log
}

// log is the storage that a thread shares with those appended to it. Only the thread
// that ends where the log ends may extend it. Any other gets a copy, which makes it a
// fork.
type log struct {
	mu       sync.RWMutex
	messages []Message
	index    map[ID]int // also of messages behind the end of a thread
}

// New returns an empty thread. The id identifies it in plans and stores.
func New(id string) *Thread {
	return &Thread{id: id, log: &log{index: map[ID]int{}}}
}

// ID returns the id of the thread.
func (t *Thread) ID() string { return t.id }

// Len returns the number of messages.
func (t *Thread) Len() int { return len(t.messages) }

// Version returns the number of messages, as the version of the log for which a plan is made.
func (t *Thread) Version() int { return len(t.messages) }

// Turns returns the number of the last turn.
func (t *Thread) Turns() int { return t.turn }

// At returns the i-th message, counting from 0. It panics if i is out of range.
func (t *Thread) At(i int) *Message { return &t.messages[i] }

// Messages returns the messages, in order.
func (t *Thread) Messages() []Message { return t.messages }

// All iterates over positions and messages.
func (t *Thread) All() iter.Seq2[int, *Message] {
	return func(yield func(int, *Message) bool) {
		for i := range t.messages {
			if !yield(i, &t.messages[i]) {
				return
			}
		}
	}
}

// Last returns the id of the last message, or "" if there is none.
func (t *Thread) Last() ID {
	if len(t.messages) == 0 {
		return ""
	}
	return t.messages[len(t.messages)-1].ID
}

// Index returns the position of a message.
func (t *Thread) Index(id ID) (int, bool) {
	t.log.mu.RLock()
	defer t.log.mu.RUnlock()
	i, ok := t.log.index[id]
	return i, ok && i < len(t.messages)
}

// Extends reports whether t was made from earlier by appending, or is the same. It does not
// compare messages: it is false if the two were loaded separately.
func (t *Thread) Extends(earlier *Thread) bool {
	return earlier != nil && t.log == earlier.log && t.id == earlier.id && earlier.Len() <= t.Len()
}

// Prefix returns the thread as it was when it had n messages. It panics if n
// is negative or greater than Len.
func (t *Thread) Prefix(n int) *Thread {
	if n < 0 || n > len(t.messages) {
		panic(fmt.Sprintf("thread: prefix %d of %d", n, len(t.messages)))
	}
	turn := 0
	if n > 0 {
		turn = t.messages[n-1].Turn
	}
	return &Thread{id: t.id, turn: turn, messages: t.messages[:n:n], log: t.log}
}

// Append returns a thread with copies of the messages added. It sets their turns, and computes
// ids that are empty. t itself does not change; appending to it twice makes two forks. The cost
// is that of the new messages, except for the first append to a fork, which copies the log.
//
// If the thread already has an id, the error wraps ErrDuplicateID.
func (t *Thread) Append(messages ...Message) (*Thread, error) {
	if len(messages) == 0 {
		return t, nil
	}
	next := &Thread{id: t.id, turn: t.turn}
	added := clone(messages)
	parent := t.Last()
	for i := range added {
		m := &added[i]
		if m.StartsTurn() {
			next.turn++
		}
		m.Turn = next.turn
		if m.ID == "" {
			m.ID = ChainID(parent, m)
		}
		parent = m.ID
	}

	l := t.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.messages) != len(t.messages) {
		l = fork(t.messages)
	}
	for i, m := range added {
		at, known := l.index[m.ID]
		if known {
			for _, undo := range added[:i] {
				delete(l.index, undo.ID)
			}
			return nil, fmt.Errorf("thread.Append(%s): message %d, id %s, first seen at %d: %w", t.id, len(t.messages)+i, m.ID, at, ErrDuplicateID)
		}
		l.index[m.ID] = len(t.messages) + i
	}
	if len(l.messages) == 0 {
		l.messages = added
	} else {
		l.messages = append(l.messages, added...)
	}
	next.log, next.messages = l, slices.Clip(l.messages)
	return next, nil
}

// fork returns a log of its own for messages.
func fork(messages []Message) *log {
	l := &log{messages: slices.Clone(messages), index: make(map[ID]int, len(messages)+16)}
	for i := range messages {
		l.index[messages[i].ID] = i
	}
	return l
}
