package policy

import "fmt"

// Early is implemented by policies that let a compaction be prepared beside the
// agent, before it must be. Without a queue of jobs it is not asked.
type Early interface {
	// Soon reports whether a compaction should be prepared now, and why, in words
	// for people.
	Soon(s *Situation) (soon bool, why string)
	// Patient reports whether every request of a thread waits for a compaction
	// that is being prepared; otherwise only those do that must not be sent
	// without one (D12).
	Patient() bool
}

var (
	_ Early = Auto{}
	_ Early = Workstream{}
)

// defaultSoft leaves the agent a few large results of room while the next plan
// is made.
const defaultSoft = 0.75

// Soon reports whether the request has passed the soft mark: in any favor 75 % of
// what the model can read, which is short of every hard mark, or the mark that
// prices put below that. Where prices decide nothing is prepared before that mark:
// it would keep less, or cost more, than was asked for, and beyond it the agent
// need not wait while its tools run.
func (a Auto) Soon(s *Situation) (bool, string) {
	soft := a.Marks(s).Soft
	if soft == 0 || s.Prompt <= soft {
		return false, ""
	}
	return true, fmt.Sprintf("the request takes %d tokens, the soft mark is %d of %d", s.Prompt, soft, s.limit())
}

// Patient is false: below the hard mark nobody waits.
func (Auto) Patient() bool { return false }

// Soon is Due: the seed compacts in a job at the end of the turn (D2).
func (w Workstream) Soon(s *Situation) (bool, string) { return w.Due(s) }

// Patient is true: requests wait while the thread is compacted (D12).
func (Workstream) Patient() bool { return true }
