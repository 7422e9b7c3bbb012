package palimpsest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// document is a stored value of a conversation, as this process knows it.
type document[T any] struct {
	isLoaded bool
	version  int // 0: there is none
	value    T   // as stored
}

// load reads the document once. A body that cannot be decoded counts as missing.
func (d *document[T]) load(ctx context.Context, in conversation, kind string) error {
	if d.isLoaded || in.c.config.Store.Documents == nil {
		return nil
	}
	found, err := in.c.config.Store.Documents.Document(ctx, kind, in.id)
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
	if err != nil || in.c.config.Store.Documents == nil {
		return
	}
	for range 2 { // another process may have stored its own meanwhile
		next, err := in.c.config.Store.Documents.Put(ctx, store.Document{Kind: kind, ID: in.id, Version: d.version, Body: body})
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
	if k.Window > 0 && k.Output >= k.Window { // an earlier build stored that
		step.Output = token.Model{}.AnswerReserve(k.Output, k.Window)
	}
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
// Config.Store keeps it: limits, profile, the model in Base, and Fixed in place of
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
	stored := k.step.value.Fixed
	if off := float64(now.Fixed - stored); max(off, -off) <= minFixedChange*float64(stored) {
		now.Fixed = stored
	}
	if now != k.step.value {
		k.step.save(ctx, in, lastStepKind, now)
	}
}

// calibration compares the counter's figure for a prompt with the provider's. Jobs and
// documents store it.
type calibration struct {
	// Position is the number of messages in the log, Version that of the plan in force.
	Position int `json:"position"`
	Version  int `json:"version"`
	// Tokens is the counter's figure, uncorrected; Input is the provider's, 0 for none.
	Tokens float64 `json:"tokens"`
	Input  int     `json:"input"`
}

const (
	// minCalibrated is the smallest prompt that a factor is taken from, in tokens: in a
	// smaller one the framing of the request decides.
	minCalibrated = 400
	// calibrationStep is what factors are rounded to, so that counts do not change with
	// every step.
	calibrationStep = 1.0 / 64
	// minFactor and maxFactor bound a factor. A figure beyond them is not about this
	// prompt.
	minFactor, maxFactor = 0.25, 4
)

// factor corrects the counter's figures. It is valid only under the plan that it was
// measured under: after a compaction, whatever made the counter wrong may be gone, and an
// old figure must not trigger another compaction.
func (c calibration) factor(length, version int) float64 {
	if c.Input == 0 || c.Version != version || c.Position > length || c.Tokens < minCalibrated {
		return 1
	}
	f := float64(c.Input) / c.Tokens
	if f < minFactor || f > maxFactor {
		return 1
	}
	return math.Round(f/calibrationStep) * calibrationStep
}

// initialFactor is the factor of the prompt it was measured with.
func (c calibration) initialFactor() float64 { return c.factor(c.Position, c.Version) }

// calibrationKind is the kind of the documents that store calibrations, by conversation.
const calibrationKind = "calibration"

// calibrationState is the newest calibration, and the stored one.
type calibrationState struct {
	newest calibration
	document[calibration]
}

// current is the newest one, of an earlier process too. If the document cannot be
// read, the next step tries again and this one counts without a correction. The lock is
// held.
func (c *calibrationState) current(ctx context.Context, in conversation) calibration {
	if !c.isLoaded && c.load(ctx, in, calibrationKind) == nil && c.newest.Input == 0 {
		c.newest = c.value
	}
	return c.newest
}

// update takes over what a provider counted, unless it has already counted a later
// prompt. It is stored only when the factor changes, which it rarely does.
func (c *calibrationState) update(ctx context.Context, in conversation, now calibration) {
	last := c.current(ctx, in)
	if last.Version == now.Version && last.Position > now.Position {
		return
	}
	c.newest = now
	if !c.isLoaded || now.Version != c.value.Version || now.initialFactor() != c.value.initialFactor() {
		c.save(ctx, in, calibrationKind, now)
	}
}

// lastPrompt is what the last prompt was made from beside the log. Reasoning that a provider
// binds to the prompt is no longer valid once something of it has changed.
type lastPrompt struct {
	// Contents were brought back in it.
	Contents []placedContent `json:"contents,omitempty"`
	// PlanRewritten is what Rewritten gave for its plan: a plan that changes what is sent gives
	// more. It may have come into force while the model answered.
	PlanRewritten int `json:"plan_rewritten,omitempty"`
	// Rewritten is how many messages the log had when a prompt last differed from the one
	// before.
	Rewritten int `json:"rewritten,omitempty"`
	// Reminder was shown when little room was left; zero if none was.
	Reminder reminder `json:"reminder,omitzero"`
}

// reminder is a text of the harness, the place where it stands, and the version of the plan until
// whose end it does.
type reminder struct {
	Text string    `json:"text"`
	At   thread.ID `json:"at"`
	Plan int       `json:"plan"`
}

// placedContent is a digest of content, and the place where it was shown first.
type placedContent struct {
	Digest string    `json:"digest"`
	At     thread.ID `json:"at,omitempty"`
}

// lastPromptKind is the kind of the documents that store last prompts, by conversation.
const lastPromptKind = "prompt"

// readLastPrompt is that of this process or another, for a log of so many messages. isKnown is
// false where none was made yet. If the document cannot be read, it is what this process knows.
// The lock is held.
func (k *sessionState) readLastPrompt(ctx context.Context, in conversation, messages int) (last lastPrompt, isKnown bool) {
	if in.c.config.Store.Documents != nil {
		k.lastPrompt.isLoaded = false // another process may have taken the last step
		_ = k.lastPrompt.load(ctx, in, lastPromptKind)
		isKnown = k.step.load(ctx, in, lastStepKind) == nil && k.step.version > 0
	}
	if last = k.lastPrompt.value; last.Rewritten > messages {
		last = lastPrompt{} // the thread was deleted and began anew
	}
	return last, isKnown || k.hasPrompted
}
