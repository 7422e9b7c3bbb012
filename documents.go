package palimpsest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
)

// document is a stored value of a conversation, as this process knows it.
type document[T any] struct {
	isLoaded bool
	version  int // 0: there is none
	value    T   // as stored
}

// load reads the document once. A body that cannot be decoded counts as missing.
func (d *document[T]) load(ctx context.Context, in conversation, kind string) error {
	if d.isLoaded || in.c.config.Documents == nil {
		return nil
	}
	found, err := in.c.config.Documents.Document(ctx, kind, in.id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	d.isLoaded, d.version = true, found.Version
	var value T
	if err == nil && json.Unmarshal(found.Body, &value) == nil {
		d.value = value
	}
	return nil
}

// save replaces the stored value, whoever wrote it. After a failure the old value is
// assumed.
func (d *document[T]) save(ctx context.Context, in conversation, kind string, value T) {
	body, err := json.Marshal(value)
	if err != nil || in.c.config.Documents == nil {
		return
	}
	for range 2 { // another process may have stored its own meanwhile
		next, err := in.c.config.Documents.Put(ctx, store.Document{Kind: kind, ID: in.id, Version: d.version, Body: body})
		if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
			d.version = conflict.Have
			continue
		}
		if err == nil {
			d.isLoaded, d.version, d.value = true, next, value
		}
		return
	}
}

// savedStep is what is stored of a step, for LastStep and in jobs: what the log does not
// tell. Of system and tools only the size is kept.
type savedStep struct {
	Model  string `json:"model,omitempty"`
	Window int    `json:"window,omitempty"`
	Output int    `json:"output,omitempty"`
	Budget int    `json:"budget,omitempty"`
	Fixed  int    `json:"fixed,omitempty"`

	Profile render.Profile `json:"profile"`
}

// newSavedStep is a step to store; fixed is what its system and tools take, in tokens.
func newSavedStep(step Step, fixed int) savedStep {
	model := cmp.Or(step.Base, &prompt.Prompt{}).Model
	return savedStep{Model: model, Window: step.Window, Output: step.Output, Budget: step.Budget, Fixed: fixed, Profile: step.Profile}
}

func (k savedStep) step() Step {
	step := Step{Window: k.Window, Output: k.Output, Budget: k.Budget, Fixed: k.Fixed, Profile: k.Profile}
	if k.Model != "" {
		step.Base = &prompt.Prompt{Model: k.Model}
	}
	return step
}

const (
	// lastStepKind is the kind of the documents that store last steps, by conversation.
	lastStepKind = "step"
	// minFixedChange is by what share the size of system and tools must change before it
	// is stored again: some agents write the time into every request.
	minFixedChange = 1.0 / 16
)

// LastStep is the step that was prepared last, in another process too, as far as
// Config.Documents stores it: limits, profile, the model in Base, and Fixed in place of
// system and tools. The zero Step means that nothing is stored.
func (s *Session) LastStep(ctx context.Context) (Step, error) {
	var d document[savedStep]
	err := d.load(ctx, s.conversation, lastStepKind)
	nameCall(&err, "LastStep", s.id)
	return d.value.step(), err
}

// saveLastStep stores what LastStep returns, where it changed. After a failure the next
// step tries again. The lock is held.
func (k *sessionState) saveLastStep(ctx context.Context, in conversation, step Step, fixed int) {
	now := newSavedStep(step, fixed)
	now.Profile.Key = "" // never stored
	if k.step.load(ctx, in, lastStepKind) != nil {
		return
	}
	if stored := k.step.value.Fixed; nearlyEqual(now.Fixed, stored) {
		now.Fixed = stored
	}
	if now != k.step.value {
		k.step.save(ctx, in, lastStepKind, now)
	}
}

func nearlyEqual(n, kept int) bool {
	off := float64(n - kept)
	return max(off, -off) <= minFixedChange*float64(kept)
}
