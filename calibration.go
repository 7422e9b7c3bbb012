package palimpsest

import (
	"context"
	"math"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

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

// calibrateSituation multiplies all figures of a situation with a factor, so that trigger,
// planner and meter agree.
func calibrateSituation(situation policy.Situation, factor float64) policy.Situation {
	if factor == 1 {
		return situation
	}
	count := situation.Count
	situation.Counter = situation.Counter.Scaled(factor)
	situation.CountText = situation.Counter.Text
	situation.Count = func(m *thread.Message) int { return scaled(count(m), factor) }
	situation.Fixed, situation.SentFixed = scaled(situation.Fixed, factor), scaled(situation.SentFixed, factor)
	situation.ChangedSizes, situation.PlainSizes = scaledAll(situation.ChangedSizes, factor), scaledAll(situation.PlainSizes, factor)
	situation.Correction = factor
	return situation
}

func scaled(n int, factor float64) int { return int(math.Ceil(float64(n)*factor - 1e-9)) }

func scaledAll(sizes []int, factor float64) []int {
	out := make([]int, len(sizes))
	for i, n := range sizes {
		out[i] = scaled(n, factor)
	}
	return out
}
