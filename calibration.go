package palimpsest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
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

// calibrationKind is the kind of the documents that hold the calibrations of
// threads, by thread.
const calibrationKind = "calibration"

// kept is what the documents have of a thread's calibration.
type kept struct {
	looked  bool // they were asked
	version int  // of the document
	calibration
}

// recallUsage finds what was counted of the thread before this handle was there.
// Documents that cannot be read are asked again by the next step; this one counts
// without a correction.
func (t *Thread) recallUsage(ctx context.Context) {
	documents := t.c.config.Documents
	if documents == nil || t.kept.looked {
		return
	}
	d, err := documents.Document(ctx, calibrationKind, t.id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return
	}
	t.kept.looked = true
	var u usage
	if err != nil || json.Unmarshal(d.Body, &u) != nil {
		return
	}
	t.kept.version, t.kept.calibration = d.Version, u.calibration()
	if t.usage.input == 0 {
		t.usage = t.kept.calibration
	}
}

// keepUsage keeps a new calibration when it corrects otherwise than the one that
// is kept: most steps do not. Where that fails, a process that comes after counts
// less well until its first step.
func (t *Thread) keepUsage(ctx context.Context) {
	documents := t.c.config.Documents
	if documents == nil || t.kept.looked && t.usage.version == t.kept.calibration.version && t.usage.own() == t.kept.own() {
		return
	}
	body, err := json.Marshal(usageOf(t.usage))
	if err != nil {
		return
	}
	version := t.kept.version
	for range 2 { // another process may have kept its own meanwhile
		next, err := documents.Put(ctx, store.Document{Kind: calibrationKind, ID: t.id, Version: version, Body: body})
		var conflict *store.ConflictError
		if errors.As(err, &conflict) {
			version = conflict.Have
			continue
		}
		if err == nil {
			t.kept = kept{true, next, t.usage}
		}
		return
	}
}

// own is the factor right behind the prompt that it was taken from.
func (c calibration) own() float64 { return c.factor(c.position, c.version) }

// usage is a calibration as jobs and documents keep it.
type usage struct {
	Position int     `json:"position"`
	Version  int     `json:"version"`
	Tokens   float64 `json:"tokens"`
	Input    int     `json:"input"`
}

func usageOf(c calibration) *usage { return &usage{c.position, c.version, c.tokens, c.input} }

func (u *usage) calibration() calibration {
	return calibration{sent{u.Position, u.Version, u.Tokens}, u.Input}
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
