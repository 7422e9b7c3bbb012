package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

var codecs = []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}}

// TestEveryProviderAccepts: whatever the thread is like, and wherever it is when
// it is compacted, the plan validates, the prompt encodes, no provider would
// refuse it, no message is seen both as it was and in the summary, and those in
// the system's role stay. B5, C5, D3, E5, E7
func TestEveryProviderAccepts(t *testing.T) {
	policies := []policy.Policy{
		policy.Session{Keep: 3}, policy.Session{Keep: 1, Model: llmtest.Echo{}},
		policy.Loop{}, policy.Loop{Model: llmtest.Echo{}}, policy.Loop{Model: llmtest.Script()},
		policy.Workstream{Tail: 2}, policy.Timeline{KeepRecent: 200}, policy.Timeline{KeepRecent: 200, Model: llmtest.Echo{}},
	}
	compacted := 0
	property.Check(t, func(t *rapid.T) {
		log := threadgen.Thread().Draw(t, "thread").Messages()
		p := rapid.SampledFrom(policies).Draw(t, "policy")
		codec := rapid.SampledFrom(codecs).Draw(t, "api")
		c, err := palimpsest.New(palimpsest.Config{Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		th := c.Session("random")
		step := palimpsest.Step{Base: &prompt.Prompt{Model: "m", MaxOutput: 1000, System: []prompt.System{{Text: "Be careful."}}}, Profile: render.For(codec.API())}
		for at := 0; at < len(log); {
			next := min(len(log), at+rapid.IntRange(1, 30).Draw(t, "news"))
			step.Messages, at = log[at:next], next
			made, err := th.Compact(t.Context(), step, "")
			switch {
			case errors.Is(err, policy.ErrNothing):
			case err != nil:
				t.Fatal(err)
			default:
				compacted++
				if made.CompactedTokens <= 0 || made.OriginalTokens <= 0 || made.Policy != p.Name() {
					t.Fatalf("%+v", made)
				}
			}
			step.Messages = nil
			step.Window, step.Output = 1<<30, 1 // not due
			out, err := th.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			step.Window, step.Output = 0, 0
			for _, m := range log[:at] {
				again := func(o thread.Message) bool {
					return o.Role == thread.System && o.Text() == m.Text() && shows(out.Messages, o.ID)
				}
				if m.Role == thread.System && strings.TrimSpace(m.Text()) != "" && !slices.ContainsFunc(log[:at], again) {
					t.Fatalf("message %s in the system's role is gone", m.ID)
				}
			}
			if made != nil {
				check(t, codec, made.Summarizations[0].Span, out.Prompt)
			}
		}
	})
	if compacted == 0 {
		t.Error("nothing was compacted")
	}
}

func shows(messages []thread.Message, id thread.ID) bool {
	return slices.ContainsFunc(messages, func(m thread.Message) bool { return m.ID == id && m.Kind != thread.Recap })
}

func check(t *rapid.T, codec wire.Codec, hidden thread.Span, out *prompt.Prompt) {
	t.Helper()
	body, err := codec.Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range codec.Validate(body) {
		if !problem.Advice {
			t.Fatalf("%s would refuse: %v\n%s", codec.API(), problem, body)
		}
	}
	for _, m := range out.Messages {
		if m.ID != "" && m.Kind != thread.Recap && hidden.Contains(m.ID) {
			t.Fatalf("message %s is hidden and shown", m.ID)
		}
	}
}
