package palimpsest

import (
	"sync"

	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// histories remembers of threads what a step does not change, so that a step
// costs what the step adds.
type histories struct {
	counter *token.Counter
	mu      sync.Mutex
	known   map[historyKey]*history
}

// maxHistories bounds the threads that are remembered. Beyond it all are
// forgotten, which costs no more than reading them once again.
const maxHistories = 256

type historyKey struct {
	thread  string
	profile render.Profile
}

func newHistories(c *token.Counter) *histories {
	return &histories{counter: c, known: map[historyKey]*history{}}
}

func (s *histories) of(id string, profile render.Profile) *history {
	key := historyKey{id, profile}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.known[key]
	if h == nil {
		if len(s.known) >= maxHistories {
			clear(s.known)
		}
		h = &history{counter: s.counter, profile: profile}
		s.known[key] = h
	}
	return h
}

// forget gives up what is known of a thread.
func (s *histories) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.known {
		if key.thread == id {
			delete(s.known, key)
		}
	}
}

// history is what is known of one thread for one provider.
type history struct {
	counter *token.Counter
	profile render.Profile
	memo    render.Memo

	mu     sync.Mutex
	thread *thread.Thread // the longest that was counted
	// changed and plain are the sizes of its messages; they are only added to.
	changed, plain []int
}

// sizes returns the size of every message of t in tokens, as the profile sends
// it once a plan has changed something, and when none has; 0 for one that cannot
// be sent. Messages are told apart by id, which is chained over their content; a
// caller who brings ids of his own must not use one twice for different content.
// The slices must not be written to.
func (h *history) sizes(t *thread.Thread) (changed, plain []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := t.Len()
	if h.thread != nil && h.thread.Extends(t) {
		return h.changed[:n:n], h.plain[:n:n]
	}
	messages := t.Messages()
	if !t.Extends(h.thread) {
		same := h.common(messages)
		h.changed, h.plain = h.changed[:same:same], h.plain[:same:same]
	}
	for i := len(h.plain); i < n; i++ {
		whole := h.profile.Translate(messages[i], false)
		less := h.profile.Translate(messages[i], true)
		size := h.count(&whole)
		h.plain = append(h.plain, size)
		if len(less.Parts) != len(whole.Parts) {
			size = h.count(&less)
		}
		h.changed = append(h.changed, size)
	}
	h.thread = t
	return h.changed[:n:n], h.plain[:n:n]
}

// common is how many messages at the beginning are those of the thread that was
// counted.
func (h *history) common(messages []thread.Message) int {
	if h.thread == nil {
		return 0
	}
	n := 0
	for _, m := range h.thread.Messages() {
		if n == len(messages) || messages[n].ID != m.ID {
			break
		}
		n++
	}
	return n
}

func (h *history) count(m *thread.Message) int {
	if len(m.Parts) == 0 {
		return 0
	}
	return h.counter.Message(m)
}
