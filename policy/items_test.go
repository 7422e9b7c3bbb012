package policy_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/test/items"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestItemsUnderEveryPolicy: conversations of every type of item, with results that come late and a
// program that still runs, grow under each policy. What is sent is never refused; the instructions,
// and what changes the tools, are those of the conversation, in their order; what runs is sent as it is.
func TestItemsUnderEveryPolicy(t *testing.T) {
	compacted := 0
	property.Few(t, 60, func(t *rapid.T) {
		api := rapid.SampledFrom([]string{wire.Anthropic, wire.Responses, wire.Chat, wire.Gemini}).Draw(t, "api")
		chosen := rapid.SampledFrom([]policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}, policy.Session{Keep: 3}, policy.Timeline{KeepRecent: 200}, policy.Workstream{Tail: 2}, policy.Loop{}}).Draw(t, "policy")
		name, codec, own := chosen.Name(), apicodec.For(api), items.Body(api, items.Draw(t, api, 10, 40))
		log, err := codec.Decode(own)
		if err != nil {
			t.Fatal(err)
		}
		c, err := palimpsest.New(palimpsest.Config{Policy: chosen})
		if err != nil {
			t.Fatal(err)
		}
		session := c.Session("items")
		step := palimpsest.Step{Base: log, Profile: render.For(api), Budget: 2500}
		for at := 0; at < len(log.Messages); {
			next := min(len(log.Messages), at+rapid.IntRange(5, 40).Draw(t, "news"))
			step.Messages, at = log.Messages[at:next], next
			var full *policy.BudgetError
			if _, err := session.Compact(t.Context(), step, ""); err != nil && !errors.Is(err, policy.ErrNothing) && !errors.As(err, &full) {
				t.Fatal(err)
			}
			out, err := session.PrepareStep(t.Context(), palimpsest.Step{Base: log, Profile: step.Profile, Window: 1 << 30, Output: 1}) // not due
			if err != nil {
				t.Fatal(err)
			}
			if out.PlanVersion > 0 {
				compacted++
			}
			if at < len(log.Messages) {
				continue // in the middle of a unit, perhaps
			}
			body, err := codec.Encode(out.Prompt)
			if err != nil {
				t.Fatal(err)
			}
			if err := items.Lost(codec, own, string(body)); err != nil {
				t.Fatalf("%s, %s: %v\n%s", name, api, err, body)
			}
		}
	})
	if compacted < 20 && !testing.Short() { // few are drawn then
		t.Errorf("compacted %d times", compacted)
	}
}
