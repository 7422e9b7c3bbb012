package palimpsest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLastStep: another process knows what the last step was for, and of system and
// tools the size. It is written when it changes, and not with every step.
func TestLastStep(t *testing.T) {
	kept, written := &store.Memory{}, 0
	open := func() *palimpsest.Session {
		c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: kept, Plans: kept, Documents: writes{kept, &written}}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Session("t")
	}
	if step, err := open().LastStep(t.Context()); err != nil || step.Base != nil || step.Window != 0 {
		t.Errorf("of nothing: %+v, %v", step, err)
	}
	s := open()
	ask := func(model, system string, window int) {
		t.Helper()
		base := &prompt.Prompt{Model: model, System: []prompt.System{{Text: system}}}
		step := palimpsest.Step{Base: base, Profile: render.For(wire.Anthropic), Window: window, Output: 1000, Messages: []thread.Message{plain(thread.User, "Go on.")}}
		if _, err := s.PrepareStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		if err := s.FinishStep(t.Context(), nil, wire.Usage{}, plain(thread.Assistant, "I do.")); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("Answer in short sentences. ", 100)
	for _, c := range []struct {
		model, system string
		window, want  int
	}{
		{"a", long, 50_000, 1},
		{"a", long, 50_000, 1},
		{"a", long + "It is three o'clock.", 50_000, 1},
		{"b", long, 50_000, 2},
		{"b", long, 60_000, 3},
		{"b", long + long, 60_000, 4},
	} {
		if ask(c.model, c.system, c.window); written != c.want {
			t.Errorf("model %s, window %d, %d bytes: written %d times, want %d", c.model, c.window, len(c.system), written, c.want)
		}
	}
	step, err := open().LastStep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if size := o200k(t).System([]prompt.System{{Text: long + long}}); step.Base.Model != "b" || step.Window != 60_000 || step.Output != 1000 || step.Profile != render.For(wire.Anthropic) || step.Fixed < size || step.Fixed > size+20 {
		t.Errorf("%+v, want %d tokens and a few", step, size)
	}
	// A thread under it counts as with what it stands for.
	log, err := kept.Load(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	less, err := c.Render(nil, palimpsest.Request{Thread: log, Base: step.Base})
	if err != nil {
		t.Fatal(err)
	}
	more, err := c.Render(nil, palimpsest.Request{Thread: log, Base: step.Base, Fixed: step.Fixed})
	if err != nil || more.Fixed != step.Fixed || more.Before-more.Fixed != less.Before-less.Fixed {
		t.Errorf("%d of %d tokens are fixed, without it %d of %d; %v", more.Fixed, more.Before, less.Fixed, less.Before, err)
	}
}

// TestLastStepWithFixed: what the caller says about system and tools that Base leaves out is
// what another process finds, and its own step with it changes nothing.
func TestLastStepWithFixed(t *testing.T) {
	kept := &store.Memory{}
	open := func() *palimpsest.Session {
		c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Session("t")
	}
	step := palimpsest.Step{Base: &prompt.Prompt{Model: "a"}, Fixed: 20_000, Window: 50_000, Messages: []thread.Message{plain(thread.User, "Go on.")}}
	for range 2 {
		if _, err := open().PrepareStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		last, err := open().LastStep(t.Context())
		if err != nil || last.Fixed != 20_000 {
			t.Fatalf("%d tokens, %v", last.Fixed, err)
		}
		last.Messages = []thread.Message{plain(thread.User, "And on.")}
		step = last
	}
}

// TestPlanOfAStepThatIsKnown: a dry run of a step that was prepared already plans over each
// message once.
func TestPlanOfAStepThatIsKnown(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, step := c.Session("t"), palimpsest.Step{Budget: 3_000}
	for n := range 6 {
		step.Messages = append(step.Messages, plain(thread.User, strings.Repeat("Tidy the queue. ", 150)), plain(thread.Assistant, fmt.Sprint("I tidied part ", n)))
	}
	step.Messages = append(step.Messages, plain(thread.User, "Go on."))
	p, err := s.PrepareStep(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	dry, err := s.Plan(t.Context(), step)
	if err != nil && !errors.Is(err, policy.ErrNothing) {
		t.Fatal(err)
	}
	if dry != nil && dry.ThreadVersion != p.Version {
		t.Errorf("planned over %d messages, the log has %d", dry.ThreadVersion, p.Version)
	}
}
