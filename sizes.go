package palimpsest

import (
	"sync"

	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// sizes remembers what each message takes in a prompt, so that a step costs
// what the step adds. Messages are told apart by id, which is chained over
// their content; a caller who brings ids of his own must not use one twice for
// different content.
type sizes struct {
	counter *token.Counter
	mu      sync.Mutex
	known   map[sizeKey]counted
}

// maxThreads bounds the threads that sizes are remembered of. Beyond it all are
// forgotten, which costs no more than counting them once again.
const maxThreads = 256

// sizeKey is a thread in one form: for which profile, and whether a plan has
// changed something.
type sizeKey struct {
	thread  string
	profile render.Profile
	changed bool
}

// counted holds the sizes of a run of messages. It is replaced, never changed.
type counted struct {
	ids   []thread.ID
	sizes []int
}

func newSizes(c *token.Counter) *sizes {
	return &sizes{counter: c, known: map[sizeKey]counted{}}
}

// of returns the size of every message of t in tokens, as the profile sends it;
// 0 for one that cannot be sent. The slice must not be written to.
func (s *sizes) of(t *thread.Thread, profile render.Profile, changed bool) []int {
	key := sizeKey{t.ID(), profile, changed}
	s.mu.Lock()
	have := s.known[key]
	s.mu.Unlock()

	messages := t.Messages()
	same := 0
	for same < len(have.ids) && same < len(messages) && have.ids[same] == messages[same].ID {
		same++
	}
	if same == len(messages) {
		return have.sizes[:same:same]
	}
	next := counted{
		ids:   append(make([]thread.ID, 0, len(messages)), have.ids[:same]...),
		sizes: append(make([]int, 0, len(messages)), have.sizes[:same]...),
	}
	for i := range messages[same:] {
		m := profile.Translate(messages[same+i], changed)
		size := 0
		if len(m.Parts) > 0 {
			size = s.counter.Message(&m)
		}
		next.ids = append(next.ids, m.ID)
		next.sizes = append(next.sizes, size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxThreads {
		clear(s.known)
	}
	s.known[key] = next
	return next.sizes
}
