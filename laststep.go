package palimpsest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
)

// savedStep is what documents keep of the step that was prepared last for a conversation,
// and jobs of the one that they are for: what nobody can tell from the log. What stands
// around the messages is not kept, only its size.
type savedStep struct {
	Model  string `json:"model,omitempty"`
	Window int    `json:"window,omitempty"`
	Output int    `json:"output,omitempty"`
	Budget int    `json:"budget,omitempty"`
	Fixed  int    `json:"fixed,omitempty"`

	Profile render.Profile `json:"profile"`
}

// newSavedStep is what is kept of a step whose system and tools take so many tokens.
func newSavedStep(step Step, fixed int) savedStep {
	model := cmp.Or(step.Base, &prompt.Prompt{}).Model
	return savedStep{Model: model, Window: step.Window, Output: step.Output, Budget: step.Budget, Fixed: fixed, Profile: step.Profile}
}

func (k savedStep) step() Step {
	return Step{Base: &prompt.Prompt{Model: k.Model}, Window: k.Window, Output: k.Output, Budget: k.Budget, Fixed: k.Fixed, Profile: k.Profile}
}

const (
	// lastStepKind is the kind of the documents that hold last steps, by conversation.
	lastStepKind = "step"
	// minFixedChange is the share of the size of system and tools that it has to change by
	// before it is kept anew: some agents write the time into every request.
	minFixedChange = 1.0 / 16
)

// LastStep is the step that was prepared last, as far as Config.Documents kept it, in
// another process too: the limits, the profile, the model as that of Base, and Fixed in
// place of system and tools. The zero Step stands for a conversation of which nothing is kept.
func (s *Session) LastStep(ctx context.Context) (Step, error) {
	if s.c.config.Documents == nil {
		return Step{}, nil
	}
	d, err := s.c.config.Documents.Document(ctx, lastStepKind, s.id)
	if errors.Is(err, store.ErrNotFound) {
		return Step{}, nil
	}
	var kept savedStep
	if err == nil {
		err = json.Unmarshal(d.Body, &kept)
	}
	if err != nil {
		return Step{}, fmt.Errorf("palimpsest.LastStep(%s): %w", s.id, err)
	}
	return kept.step(), nil
}

// saveLastStep keeps what LastStep returns where it differs from what is kept. Where that
// fails the next step tries again. The lock is held.
func (s *Session) saveLastStep(ctx context.Context, step Step, fixed int) {
	now := newSavedStep(step, fixed)
	now.Profile.Key = "" // it is never written
	k, documents := &s.state().step, s.c.config.Documents
	if documents == nil || k.load(ctx, documents, lastStepKind, s.id) != nil {
		return
	}
	if nearlyEqual(now.Fixed, k.value.Fixed) {
		now.Fixed = k.value.Fixed
	}
	if now != k.value {
		k.save(ctx, documents, lastStepKind, s.id, now)
	}
}

func nearlyEqual(n, kept int) bool {
	off := float64(n - kept)
	return max(off, -off) <= minFixedChange*float64(kept)
}
