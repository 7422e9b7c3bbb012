package palimpsest

import "github.com/palimpsest-ai/palimpsest/render"

// Shown says what the last prompt that a Thread handed out was made from. The
// zero value stands for none.
type Shown struct {
	// Version is how many messages the log had, PlanVersion the version of the
	// plans.
	Version, PlanVersion int
	// Tokens is the size of the whole request, corrected by what the provider
	// counted.
	Tokens int
	// Manifest says where each message of the prompt came from. It must not be
	// written to.
	Manifest *render.Manifest
}

// Shown returns what the last prompt of PrepareStep, Overflowed or CutOff was made
// from.
func (t *Thread) Shown() Shown {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown
}
