package palimpsest

import (
	"context"
	"math"
	"time"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// sent is a prompt that was handed out to be sent: how many messages the log
// had, which version of the plans was in force, and its size in tokens of the
// counter, uncorrected.
type sent struct {
	position, version int
	tokens            float64
}

// calibration is what a provider counted of such a prompt.
type calibration struct {
	sent
	input int
}

const (
	// leastCalibrated is the smallest prompt that a factor is taken from, in
	// tokens: below it the frame of the request decides.
	leastCalibrated = 400
	// calibrationStep is what factors are rounded to, so that counts do not
	// tremble from step to step.
	calibrationStep = 1.0 / 64
	// leastFactor and mostFactor bound a factor. Beyond them the figure is not
	// about this prompt: a provider that counts something else, or nothing.
	leastFactor, mostFactor = 0.25, 4
)

// factor is what the counter's figures are to be multiplied by for this thread.
// A figure says something only about the plan that it was counted under: after
// a compaction what made the counter wrong may be gone, and an old figure must
// not set off another.
func (c calibration) factor(length, version int) float64 {
	if c.input == 0 || c.version != version || c.position > length || c.tokens < leastCalibrated {
		return 1
	}
	f := float64(c.input) / c.tokens
	if f < leastFactor || f > mostFactor {
		return 1
	}
	return math.Round(f/calibrationStep) * calibrationStep
}

const (
	// measuredFor bounds how long a provider is asked for a size, and restOfMeasure
	// is how long it is left alone after a failure.
	measuredFor   = 10 * time.Second
	restOfMeasure = time.Minute
)

// measure asks the provider how large the request is, where the counter only
// estimates, nothing of this plan was counted yet, and the request is so large
// that the difference may matter. It reports whether the figures have changed.
func (t *Thread) measure(ctx context.Context, s *policy.State, f *policy.Fitted, version int) bool {
	ask, now := t.c.config.Measure, t.c.config.Now
	known := t.usage.input > 0 && t.usage.version == version && t.usage.position <= s.Thread.Len()
	if ask == nil || known || t.c.config.Counter.Exact() || s.Prompt < max(leastCalibrated, limitOf(s)/2) || now().Before(t.deaf) {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, measuredFor)
	defer cancel()
	n, err := ask.CountTokens(bounded, f.Prompt)
	if err != nil || n <= 0 {
		t.deaf = now().Add(restOfMeasure)
		return false
	}
	t.usage = calibration{sent{position: s.Thread.Len(), version: version, tokens: float64(s.Prompt)}, n}
	return t.usage.factor(s.Thread.Len(), version) != 1
}

// calibrate corrects all figures of a state, so that trigger, planner and meter
// count alike.
func calibrate(s *policy.State, factor float64) {
	s.Counter, s.Fixed = s.Counter.Scaled(factor), scaled(s.Fixed, factor)
	count := s.Count
	s.Count = func(m *thread.Message) int { return scaled(count(m), factor) }
	s.Changed, s.Plain = scaledAll(s.Changed, factor), scaledAll(s.Plain, factor)
	s.Summarizer = calibrated{s.Summarizer, factor}
}

func scaled(n int, factor float64) int { return int(math.Ceil(float64(n)*factor - 1e-9)) }

func scaledAll(sizes []int, factor float64) []int {
	out := make([]int, len(sizes))
	for i, n := range sizes {
		out[i] = scaled(n, factor)
	}
	return out
}

// calibrated gives a summarizer, which counts uncorrected, budgets that it
// understands.
type calibrated struct {
	summarize.Summarizer
	factor float64
}

func (c calibrated) Summarize(ctx context.Context, in summarize.Input) (summary.Summary, error) {
	if in.Budget > 0 {
		in.Budget = max(1, int(float64(in.Budget)/c.factor))
	}
	return c.Summarizer.Summarize(ctx, in)
}
