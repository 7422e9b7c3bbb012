package palimpsest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestConfigModel: a step that does not say of which model it is has the name, the window and
// the counts of Config.Model; what the step says of itself stands.
func TestConfigModel(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Model: "claude-haiku-4-5"})
	must(err)
	other, err := palimpsest.New(palimpsest.Config{})
	must(err)
	words := []thread.Message{thread.NewMessage(thread.User, strings.Repeat("func handle(order Order) error { return nil }\n", 100))}
	for name, row := range map[string]struct {
		step   palimpsest.Step
		model  string
		window int
	}{
		"nothing":       {palimpsest.Step{}, "claude-haiku-4-5", 200_000},
		"system only":   {palimpsest.Step{Base: &prompt.Prompt{System: []prompt.System{{Text: "Tidy."}}}}, "claude-haiku-4-5", 200_000},
		"the model":     {palimpsest.Step{Base: &prompt.Prompt{Model: "claude-haiku-4-5"}}, "claude-haiku-4-5", 200_000},
		"a window":      {palimpsest.Step{Window: 50_000}, "claude-haiku-4-5", 50_000},
		"a budget":      {palimpsest.Step{Budget: 50_000}, "claude-haiku-4-5", 0},
		"another model": {palimpsest.Step{Base: &prompt.Prompt{Model: "gpt-5"}}, "gpt-5", 0},
	} {
		t.Run(name, func(t *testing.T) {
			row.step.Messages = words
			p, err := c.Session(name).PrepareStep(t.Context(), row.step)
			must(err)
			if p.Model != row.model || p.Step.Window != row.window {
				t.Errorf("model %q with a window of %d, want %q with %d", p.Model, p.Step.Window, row.model, row.window)
			}
			plainly, err := other.Session(name).PrepareStep(t.Context(), row.step)
			must(err)
			if p.Tokens <= plainly.Tokens {
				t.Errorf("%d tokens, as o200k counts: %d", p.Tokens, plainly.Tokens)
			}
			if row.step.Base != nil && row.step.Base.Model == "" != (name == "system only") {
				t.Error("the caller's Base has changed")
			}
		})
	}
	if _, err := palimpsest.New(palimpsest.Config{Model: "my-own"}); err == nil || !strings.Contains(err.Error(), "my-own") {
		t.Errorf("a model that nobody knows: %v", err)
	}
}

// TestAnswerHasRoom: what a request asks for as an answer counts to the window, also of a request that was read from
// its provider's form; limits that leave no room are an error. F8
func TestAnswerHasRoom(t *testing.T) {
	read, err := anthropic.Codec{}.Decode(`{"model":"m","max_tokens":3000,"messages":[{"role":"user","content":"hi"}]}`)
	must(err)
	c, err := palimpsest.New(palimpsest.Config{})
	must(err)
	for name, base := range map[string]*prompt.Prompt{"read": read, "made": {MaxOutput: 3000}} {
		s := c.Session(name)
		for n := range 30 {
			said := thread.NewMessage(thread.User, strings.Repeat(fmt.Sprintf("Order %d is here. ", n), 80))
			p, err := s.PrepareStep(t.Context(), palimpsest.Step{Base: base, Window: 10_000, Messages: []thread.Message{said}})
			must(err)
			if p.Tokens > 7_000 {
				t.Fatalf("%s: step %d has %d tokens beside an answer of 3,000", name, n, p.Tokens)
			}
		}
	}
	for _, step := range []palimpsest.Step{{Window: 100, Output: 200}, {Window: 100, Output: 100}, {Base: read, Window: 3000}, {Window: -1}, {Output: -1}, {Budget: -1}} {
		s := c.Session("no room")
		if _, err := s.PrepareStep(t.Context(), step); err == nil || !strings.Contains(err.Error(), "leave no room") {
			t.Errorf("%+v is prepared: %v", step, err)
		}
		if _, err := s.Compact(t.Context(), step, ""); err == nil || !strings.Contains(err.Error(), "leave no room") {
			t.Errorf("%+v is compacted: %v", step, err)
		}
	}
}

// TestConfigStore: a session whose process has ended goes on in another one, with its plan and the
// last step; a part of the store can be another.
func TestConfigStore(t *testing.T) {
	kept, own := &store.Memory{}, &store.Memory{}
	for n, c := range []palimpsest.Config{
		{Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}},
		{Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}},
		{Store: store.Tenant{Log: own, Plans: kept, Documents: own}},
	} {
		made, err := palimpsest.New(c)
		must(err)
		s := made.Session("ticket-4711")
		last, err := s.LastStep(t.Context())
		must(err)
		if was := last.Window != 0; was != (n == 1) {
			t.Errorf("Compactor %d: the last step is known: %v", n, was)
		}
		p, err := s.PrepareStep(t.Context(), palimpsest.Step{Window: 50_000, Messages: []thread.Message{{ID: thread.ID(rune('a' + n)), Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Tidy."}}}}})
		must(err)
		if want := []int{1, 2, 1}[n]; p.Version != want {
			t.Errorf("Compactor %d: %d messages, want %d", n, p.Version, want)
		}
	}
}
