package palimpsest

import (
	"context"
	"math"
	"time"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// calibration is the size of a prompt by the counter, and what a provider counted of
// it, as jobs and documents keep it.
type calibration struct {
	// Position is how many messages the log had, Version that of the plan in force.
	Position int `json:"position"`
	Version  int `json:"version"`
	// Tokens are the counter's figure, uncorrected, Input is the provider's; 0 where it
	// told none.
	Tokens float64 `json:"tokens"`
	Input  int     `json:"input"`
}

const (
	// minCalibrated is the smallest prompt that a factor is taken from, in
	// tokens: below it the frame of the request decides.
	minCalibrated = 400
	// calibrationStep is what factors are rounded to, so that counts do not
	// tremble from step to step.
	calibrationStep = 1.0 / 64
	// minFactor and maxFactor bound a factor. Beyond them the figure is not
	// about this prompt: a provider that counts something else, or nothing.
	minFactor, maxFactor = 0.25, 4
)

// factor is what the counter's figures are to be multiplied by. A figure says
// something only about the plan that it was counted under: after a compaction
// what made the counter wrong may be gone, and an old figure must not set off
// another.
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

// initialFactor is the factor right behind the prompt that it was taken from.
func (c calibration) initialFactor() float64 { return c.factor(c.Position, c.Version) }

// calibrationKind is the kind of the documents that hold the calibrations of
// conversations, by id.
const calibrationKind = "calibration"

// calibrationState is the newest calibration, and the document that keeps one.
type calibrationState struct {
	newest calibration
	document[calibration]
}

// calibration is the newest that is known, from a process before this one too.
// Documents that cannot be read are asked again by the next step; this one counts
// without a correction. The lock is held.
func (s *Session) calibration(ctx context.Context) calibration {
	c, documents := &s.state().calibration, s.c.config.Documents
	if documents == nil || c.isLoaded || c.load(ctx, documents, calibrationKind, s.id) != nil {
		return c.newest
	}
	if c.newest.Input == 0 {
		c.newest = c.value
	}
	return c.newest
}

// calibrate takes in what a provider counted, unless it has counted a later
// prompt already. It is kept when it corrects otherwise than the one that is
// kept: most steps do not. Where that fails, a process that comes after counts
// less well until its first step.
func (s *Session) calibrate(ctx context.Context, now calibration) {
	last := s.calibration(ctx)
	if last.Version == now.Version && last.Position > now.Position {
		return
	}
	c, documents := &s.state().calibration, s.c.config.Documents
	c.newest = now
	if documents == nil || c.isLoaded && now.Version == c.value.Version && now.initialFactor() == c.value.initialFactor() {
		return
	}
	c.save(ctx, documents, calibrationKind, s.id, now)
}

const (
	// measureTimeout bounds how long a provider is asked for a size, and measurePause
	// is how long it is left alone after a failure.
	measureTimeout = 10 * time.Second
	measurePause   = time.Minute
)

// measure asks the provider how large the request is, where the counter only
// estimates, nothing of this plan was counted yet, and the request is so large
// that the difference may matter. It reports whether there is a new figure.
func (s *Session) measure(ctx context.Context, l snapshot, situation *policy.Situation) (calibration, bool) {
	counter, now, k := s.c.config.Measure, s.c.config.Now, s.state()
	known := l.usage.Input > 0 && l.usage.Version == l.version && l.usage.Position <= l.log.Len()
	if counter == nil || known || s.c.config.Counter.Exact() || situation.PromptTokens < max(minCalibrated, s.limit(situation)/2) || now().Before(k.measureAfter) {
		return l.usage, false
	}
	bounded, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	n, err := counter.CountTokens(bounded, situation.Rendered.Prompt)
	if err != nil || n <= 0 {
		k.measureAfter = now().Add(measurePause)
		return l.usage, false
	}
	found := calibration{Position: l.log.Len(), Version: l.version, Tokens: float64(situation.PromptTokens), Input: n}
	k.calibration.newest = found
	return found, found.factor(l.log.Len(), l.version) != 1
}

// calibrateSituation is a situation with all its figures times a factor, so that trigger,
// planner and meter count alike.
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
	situation.Summarizer = scaledBudgetSummarizer{situation.Summarizer, factor}
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

// scaledBudgetSummarizer gives a summarizer, which counts uncorrected, budgets that it
// understands.
type scaledBudgetSummarizer struct {
	summarize.Summarizer
	factor float64
}

func (c scaledBudgetSummarizer) Summarize(ctx context.Context, in summarize.Input) (summarize.Result, error) {
	if in.Budget > 0 {
		in.Budget = max(1, int(float64(in.Budget)/c.factor))
	}
	return c.Summarizer.Summarize(ctx, in)
}
