package policy

import (
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Estimates remembers what the messages of a log take by the estimate of seed B, so
// that a step costs what it adds. The zero value is ready to use; it is safe for
// concurrent use and must not be copied.
type Estimates struct {
	mu     sync.Mutex
	thread *thread.Thread
	sizes  []int
}

// of returns the estimates of all messages of a log. They must not be written to.
func (e *Estimates) of(t *thread.Thread) []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.thread != nil && e.thread.Extends(t) {
		return e.sizes[:t.Len():t.Len()]
	}
	if !t.Extends(e.thread) {
		e.sizes = nil
	}
	for i := len(e.sizes); i < t.Len(); i++ {
		e.sizes = append(e.sizes, estimateMessage(uncopied.At(t, i)))
	}
	e.thread = t
	return e.sizes[:t.Len():t.Len()]
}

// estimate is B1's sum over the list as the agent sees it: the system prompt as
// one message, then the others. Messages that stand as in the log are known already.
func (s *Situation) estimate(entries []entry) int {
	total := 0
	if system := s.Base.System; len(system) > 0 {
		total = roleTokens + quarter(systemUnits(system))
	}
	var known []int
	if s.Estimates != nil {
		known = s.Estimates.of(s.Thread)
	}
	for i := range entries {
		e := &entries[i]
		if known != nil && e.plain {
			total += known[e.at]
			continue
		}
		total += estimateMessage(&e.Message)
	}
	return total
}

// roleTokens is what the seed adds for the role of a message.
const roleTokens = 2

// estimateMessage is B1 for one message: 2 for its role, and a quarter of the
// characters, rounded up, of each text, of the name and the arguments of each
// call, and of each result as JSON. Characters are UTF-16 code units, which is
// what the length of a JavaScript string counts. Reasoning and media take
// nothing, as in the seed.
func estimateMessage(m *thread.Message) int {
	total := roleTokens
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Text:
			total += quarter(units(part.Text))
		case thread.Opaque:
			total += quarter(units(part.Text))
		case thread.ToolCall:
			total += quarter(units(part.Name)) + quarter(units(stringify(part.Arguments)))
		case thread.ToolResult:
			if part.Structured != "" {
				total += quarter(units(stringify(part.Structured)))
			} else {
				total += quarter(quotedUnits(part.Text()))
			}
		}
	}
	return total
}

func systemUnits(system []prompt.System) int {
	n := len(system) - 1 // the newlines between the blocks
	for _, block := range system {
		n += units(block.Text)
	}
	return n
}

func quarter(characters int) int { return (characters + 3) / 4 }
