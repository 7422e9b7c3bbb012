package palimpsest_test

import (
	"errors"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestCompactFillsBudget: a budget means the same to a session as to Compactor.Compact, under
// every policy with a ladder. With OwnTarget the policy leaves less, and a budget that is met
// already asks for nothing.
func TestCompactFillsBudget(t *testing.T) {
	read, err := transcript.Open("testdata/sessions/fix-retry.claude-code.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	log := read.Transcripts[0].Thread
	for _, tt := range []struct{ policy, favor string }{
		{"auto", "quality"}, {"auto", "balanced"}, {"auto", "cost"}, {"ladder", ""}, {"last-turns:3", ""},
	} {
		t.Run(tt.policy+" "+tt.favor, func(t *testing.T) {
			chosen, err := policyfile.ByName(tt.policy)
			if err != nil {
				t.Fatal(err)
			}
			chosen.Auto.Favor = policy.Favor(tt.favor)
			c, err := palimpsest.New(palimpsest.Config{Policy: chosen.Policy(nil)})
			if err != nil {
				t.Fatal(err)
			}
			whole, err := c.Render(nil, palimpsest.Request{Thread: log})
			if err != nil {
				t.Fatal(err)
			}
			budget := whole.Before * 4 / 5
			alone, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: budget, Profile: render.Profile{Reach: render.Nowhere}})
			if err != nil {
				t.Fatal(err)
			}
			s, step := c.Session(log.ID()), palimpsest.Step{Budget: budget}
			if _, err := s.Append(t.Context(), log.Messages()...); err != nil {
				t.Fatal(err)
			}
			step.OwnTarget = true
			own, err := s.Plan(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			step.OwnTarget = false
			dry, err := s.Plan(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			made, err := s.Compact(t.Context(), step, "")
			if err != nil {
				t.Fatal(err)
			}
			if dry.CompactedTokens != alone.After || made.CompactedTokens != alone.After || own.CompactedTokens >= made.CompactedTokens {
				t.Errorf("in %d tokens of %d: alone %d, the session %d, its dry run %d; to its own target %d",
					budget, whole.Before, alone.After, made.CompactedTokens, dry.CompactedTokens, own.CompactedTokens)
			}
			if tt.policy != "last-turns:3" && made.CompactedTokens < budget*9/10 {
				t.Errorf("%d tokens of %d are filled", made.CompactedTokens, budget)
			}
			if _, err := s.Compact(t.Context(), step, ""); !errors.Is(err, policy.ErrNothing) {
				t.Errorf("once more: %v", err)
			}
		})
	}
}
