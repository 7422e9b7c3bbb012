package thread

import (
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/permit"
)

var (
	// ErrDuplicateID is wrapped by errors about a message id that the thread
	// holds already.
	ErrDuplicateID = errors.New("message id is already in the thread")
	// ErrUnknownID is wrapped by errors about a message id that the thread does
	// not hold.
	ErrUnknownID = errors.New("message id is not in the thread")
)

// Thread is an append-only log of messages. A Thread value never changes:
// Append returns a new one that shares the messages of the old, and nobody
// outside can write to them: what is appended is copied, and so is what is
// handed out. The zero value is not usable; start with New.
type Thread struct {
	id   string
	n    int
	turn int
	log  *log
}

// log is the storage shared by a thread and the threads appended to it. Only
// the thread that ends where the log ends may extend it; any other gets a copy,
// which makes it a fork.
type log struct {
	mu       sync.RWMutex
	messages []Message
	index    map[ID]int
}

// New returns an empty thread. The id names it in plans and stores.
func New(id string) *Thread {
	return &Thread{id: id, log: &log{index: map[ID]int{}}}
}

// ID returns the thread's name.
func (t *Thread) ID() string { return t.id }

// Len returns the number of messages.
func (t *Thread) Len() int { return t.n }

// Version returns the position up to which the log is known: the number of
// messages. A plan records the version that it was made for.
func (t *Thread) Version() int { return t.n }

// Turns returns the number of the last turn.
func (t *Thread) Turns() int { return t.turn }

// At returns a copy of the i-th message, counting from 0. It panics if i is out
// of range.
func (t *Thread) At(i int) *Message {
	out := []Message{*t.at(i)}
	Own(out)
	return &out[0]
}

// Messages returns copies of the messages, in order.
func (t *Thread) Messages() []Message { return clone(t.messages()) }

// All iterates over positions and copies of the messages.
func (t *Thread) All() iter.Seq2[int, *Message] {
	return func(yield func(int, *Message) bool) {
		for i := range t.n {
			if !yield(i, t.At(i)) {
				return
			}
		}
	}
}

// Uncopied returns the messages of the log themselves. It is for code of this
// module, which does not write to them; no other code can make the key.
func (t *Thread) Uncopied(permit.Key) []Message { return t.messages() }

func (t *Thread) messages() []Message {
	t.log.mu.RLock()
	defer t.log.mu.RUnlock()
	return t.log.messages[:t.n:t.n]
}

func (t *Thread) at(i int) *Message {
	if i < 0 || i >= t.n {
		panic(fmt.Sprintf("thread: message %d of %d", i, t.n))
	}
	return &t.messages()[i]
}

// Last returns the id of the last message, or "" when there is none.
func (t *Thread) Last() ID {
	if t.n == 0 {
		return ""
	}
	return t.at(t.n - 1).ID
}

// Index returns the position of a message.
func (t *Thread) Index(id ID) (int, bool) {
	t.log.mu.RLock()
	defer t.log.mu.RUnlock()
	i, ok := t.log.index[id]
	return i, ok && i < t.n
}

// Extends reports whether t is known to be earlier with messages added, or the
// same. It compares no messages: false may also mean that the two were read
// into memory apart.
func (t *Thread) Extends(earlier *Thread) bool {
	return earlier != nil && t.log == earlier.log && t.id == earlier.id && earlier.n <= t.n
}

// Prefix returns the thread as it was when it had n messages. It panics if n
// is negative or greater than Len.
func (t *Thread) Prefix(n int) *Thread {
	if n < 0 || n > t.n {
		panic(fmt.Sprintf("thread: prefix %d of %d", n, t.n))
	}
	turn := 0
	if n > 0 {
		turn = t.at(n - 1).Turn
	}
	return &Thread{id: t.id, n: n, turn: turn, log: t.log}
}

// Append returns a thread with copies of the messages added. It sets their turn
// numbers, and chained ids where the id is empty. t itself stays as it is; appending to
// the same thread twice gives two forks. The cost is that of the new messages,
// except for the first append to a fork, which copies the log once.
//
// An id that the thread holds already is an error that wraps ErrDuplicateID;
// then nothing was appended.
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
	if len(l.messages) != t.n {
		l = l.fork(t.n)
	}
	for i, m := range added {
		at, held := l.index[m.ID]
		if held {
			for _, undo := range added[:i] {
				delete(l.index, undo.ID)
			}
			return nil, fmt.Errorf("thread.Append(%s): message %d, id %s, first seen at %d: %w", t.id, t.n+i, m.ID, at, ErrDuplicateID)
		}
		l.index[m.ID] = t.n + i
	}
	l.messages = append(l.messages, added...)
	next.log, next.n = l, len(l.messages)
	return next, nil
}

// fork copies the first n messages. The caller holds the lock of l; the copy is
// not shared yet and needs none.
func (l *log) fork(n int) *log {
	c := &log{messages: make([]Message, n, n+16), index: make(map[ID]int, n+16)}
	copy(c.messages, l.messages)
	for i := range c.messages {
		c.index[c.messages[i].ID] = i
	}
	return c
}
