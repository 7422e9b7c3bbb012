package policy_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/injectedtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestAuthorsAreTraceable: in what is sent under each policy, over each API, every sentence is by whoever
// wrote it: the person's word by its passages, and in the user's part of a summary, only if the person said it.
func TestAuthorsAreTraceable(t *testing.T) {
	summaries := 0
	property.Few(t, 60, func(t *rapid.T) {
		api := rapid.SampledFrom([]string{wire.Anthropic, wire.Responses, wire.Chat, wire.Gemini}).Draw(t, "api")
		chosen := rapid.SampledFrom([]policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}, policy.Session{Keep: 3}, policy.Timeline{KeepRecent: 200}, policy.Workstream{Tail: 2}, policy.Loop{}}).Draw(t, "policy")
		log := injectedtest.Signed(t, 6, 24, "claude-code", "")
		c, err := palimpsest.New(palimpsest.Config{Policy: chosen})
		if err != nil {
			t.Fatal(err)
		}
		session := c.Session("signed")
		var full *policy.BudgetError
		p, err := session.Compact(t.Context(), palimpsest.Step{Messages: log, Profile: render.For(api), Budget: 1500}, "")
		if errors.As(err, &full) || errors.Is(err, policy.ErrNothing) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := session.PrepareStep(t.Context(), palimpsest.Step{Profile: render.For(api), Window: 1 << 30, Output: 1}) // not due
		if err != nil {
			t.Fatal(err)
		}
		if err := injectedtest.Misquoted(out.Messages); err != nil {
			t.Fatalf("%s, %s: %v", chosen.Name(), api, err)
		}
		for _, r := range p.Summarizations {
			s := &r.Summary
			summaries++
			said := s.CurrentTask
			for _, it := range slices.Concat(s.Requests, s.Constraints) {
				said += "\n" + it.Text
			}
			for _, by := range injectedtest.SignedBy(said) {
				if by != thread.ByPerson {
					t.Fatalf("%s: the summary puts what a %s says into the user's mouth:\n%s", chosen.Name(), by, said)
				}
			}
		}
	})
	if summaries < 20 && !testing.Short() { // few are drawn then
		t.Errorf("only %d summaries", summaries)
	}
}
