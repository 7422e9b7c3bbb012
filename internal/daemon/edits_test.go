package daemon_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestEdits: a host that holds the whole history sends all of it at each step, under
// ids of its own. The log has each message once, and the edits make of the host's list
// exactly the prompt that the same step gives without them.
func TestEdits(t *testing.T) {
	f, err := transcript.Open("../../testdata/sessions/fix-retry.claude-code.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", wire.Anthropic} {
		t.Run("api="+name, func(t *testing.T) {
			c := start(t, daemon.Config{}).client(t, "")
			th, err := c.CreateThread(t.Context(), api.NewThread{})
			if err != nil {
				t.Fatal(err)
			}
			step := api.Step{API: name, Base: &neutral.Prompt{Model: "some-model", MaxOutput: 1000}, Window: 20_000}
			var plans, omitted, replaced, inserted int
			for i, m := range f.Transcripts[0].Thread.All() {
				own := neutral.MessageOf(m)
				own.ID, own.Turn = fmt.Sprintf("host-%d", i), 0
				step.Messages = append(step.Messages, own)
				if m.Role == "assistant" || i%16 != 0 && i < f.Transcripts[0].Thread.Len()-1 {
					continue
				}
				step.Edits = true
				p, err := c.Prepare(t.Context(), th.ID, 0, step)
				if err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				if p.Version != len(step.Messages) {
					t.Fatalf("message %d: the log has %d messages, the host %d", i, p.Version, len(step.Messages))
				}
				if len(p.Body) > 0 || len(p.Prompt.Messages) > 0 || p.Prompt.Model != "some-model" {
					t.Fatalf("message %d: beside the edits stand body %.100s and prompt %+v", i, p.Body, p.Prompt)
				}
				step.Edits = false
				want, err := c.Prepare(t.Context(), th.ID, 0, step)
				if err != nil {
					t.Fatal(err)
				}
				if len(want.Edits) > 0 || want.Version != p.Version || want.PlanVersion != p.PlanVersion {
					t.Fatalf("message %d: asked again it is %d messages under plan %d, not %d under %d", i, want.Version, want.PlanVersion, p.Version, p.PlanVersion)
				}
				if d := cmp.Diff(shownBy(t, want, nil), shownBy(t, p, p.ApplyEdits(step.Messages))); d != "" {
					t.Fatalf("message %d: the edits do not make the prompt (-prompt +edited):\n%s", i, d)
				}
				plans = p.PlanVersion
				for _, e := range p.Edits {
					inserted += len(e.InsertBefore)
					if e.Omit {
						omitted++
					}
					if e.Content != nil {
						replaced++
					}
				}
			}
			if plans < 2 || omitted == 0 || inserted == 0 || replaced == 0 {
				t.Errorf("%d plans; %d omitted, %d replaced, %d inserted: not all kinds of edits were made", plans, omitted, replaced, inserted)
			}
			t.Logf("%d plans; %d omitted, %d replaced, %d inserted", plans, omitted, replaced, inserted)
		})
	}
}

// TestEditOfLargeResult: a result that does not fit is edited where it stands, so that
// the host's call keeps its result; a step without a plan edits nothing.
func TestEditOfLargeResult(t *testing.T) {
	c := start(t, daemon.Config{}).client(t, "")
	th, err := c.CreateThread(t.Context(), api.NewThread{})
	if err != nil {
		t.Fatal(err)
	}
	user, asks, answers := said("user", "Read the log."), said("assistant", "I read it."), neutral.Message{ID: "m3", Role: "tool"}
	user.ID, asks.ID = "m1", "m2"
	asks.Parts = append(asks.Parts, neutral.Part{Type: neutral.ToolCallPart, CallID: "call_1", Tool: "read", Arguments: "{}"})
	answers.Parts = []neutral.Part{{Type: neutral.ToolResultPart, CallID: "call_1", Tool: "read", Content: []neutral.Part{{Type: neutral.TextPart, Text: strings.Repeat("The build failed at the linker. ", 3000)}}}}
	step := api.Step{Window: 200_000, Edits: true, Messages: []neutral.Message{user, asks, answers}}
	p, err := c.Prepare(t.Context(), th.ID, 0, step)
	if err != nil || len(p.Edits) > 0 {
		t.Fatalf("it fits: %+v, %v", p, err)
	}
	step.Window = 8000
	if p, err = c.Prepare(t.Context(), th.ID, 0, step); err != nil {
		t.Fatal(err)
	}
	if len(p.Edits) != 1 || p.Edits[0].MessageID != "m3" || p.Edits[0].Omit || len(p.Edits[0].Content) != 1 {
		t.Fatalf("the edits are %+v", p.Edits)
	}
	part := p.Edits[0].Content[0]
	if part.Type != neutral.ToolResultPart || part.CallID != "call_1" || len(part.Content) == 0 || len(part.Content[0].Text) > 30_000 || p.Tokens > 8000 {
		t.Errorf("%d tokens, the result is %.300v", p.Tokens, part)
	}
	if d := cmp.Diff(len(step.Messages), len(p.ApplyEdits(step.Messages))); d != "" {
		t.Error(d)
	}
}

// shownBy is what a model is shown by an answer, message by message: with a host's
// messages in place of its own where there are some.
func shownBy(t *testing.T, p *api.Prepared, host []neutral.Message) []string {
	t.Helper()
	if host == nil && len(p.Body) > 0 {
		return messagesIn(t, p.Body)
	}
	if host == nil {
		host = p.Prompt.Messages
	}
	if p.API == "" { // reasoning is the host's own matter
		var all []string
		for _, m := range host {
			m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(part neutral.Part) bool { return part.Type == neutral.ReasoningPart })
			said, err := json.Marshal(m.Parts)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Parts) > 0 {
				all = append(all, m.Role+" "+string(said))
			}
		}
		return all
	}
	q := &prompt.Prompt{Model: "some-model", MaxOutput: 1000}
	for _, m := range host {
		v, err := m.Value("message")
		if err != nil {
			t.Fatal(err)
		}
		q.Messages = append(q.Messages, v)
	}
	body, err := anthropic.Codec{}.Encode(q)
	if err != nil {
		t.Fatal(err)
	}
	return messagesIn(t, body)
}

var cacheMarks = regexp.MustCompile(`,"cache_control":\{[^{}]*\}`)

func messagesIn(t *testing.T, body []byte) []string {
	t.Helper()
	var q struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(cacheMarks.ReplaceAll(body, nil), &q); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range q.Messages {
		all = append(all, string(m))
	}
	return all
}

// TestForced: a host that says itself when has its messages compacted below every mark;
// afterwards it sends what is left of them, with what came since, and the log has each
// once.
func TestForced(t *testing.T) {
	c := start(t, daemon.Config{}).client(t, "")
	th, err := c.CreateThread(t.Context(), api.NewThread{})
	if err != nil {
		t.Fatal(err)
	}
	var host []neutral.Message
	talk := func(from, to int) {
		for i := from; i < to; i++ {
			m := said([]string{"user", "assistant"}[i%2], fmt.Sprintf("%d. ", i)+strings.Repeat("The handler reads its queue. ", 60))
			m.ID = fmt.Sprint("m", i)
			host = append(host, m)
		}
	}
	talk(0, 20)
	step := api.Step{Window: 200_000, Edits: true, Messages: host}
	before, err := c.Prepare(t.Context(), th.ID, api.Any, step)
	if err != nil || len(before.Edits) > 0 {
		t.Fatalf("nothing is due: %+v, %v", before, err)
	}
	step.Force = true
	for round := 1; round <= 2; round++ {
		p, err := c.Prepare(t.Context(), th.ID, api.Any, step)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Edits) == 0 || p.Tokens > before.Tokens*2/3 || p.PlanVersion != round {
			t.Fatalf("round %d: %d tokens of %d, plan %d, %d edits", round, p.Tokens, before.Tokens, p.PlanVersion, len(p.Edits))
		}
		left := p.ApplyEdits(step.Messages)
		step.Messages = nil
		for _, m := range left { // the host knows what was put in
			if m.ID != "" {
				step.Messages = append(step.Messages, m)
			}
		}
		host = nil
		talk(20*round, 20*round+10)
		step.Messages = append(step.Messages, host...)
	}
	step.Force = false
	p, err := c.Prepare(t.Context(), th.ID, api.Any, step)
	if err != nil || p.Version != 20+10+10 {
		t.Errorf("the log has %d messages, %v", p.Version, err)
	}
	// What has no older part stays as it is, and nobody else compacts by that word.
	small, err := c.CreateThread(t.Context(), api.NewThread{})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Prepare(t.Context(), small.ID, api.Any, api.Step{Edits: true, Force: true, Window: 200_000, Messages: []neutral.Message{said("user", "Hello.")}}); err != nil || len(p.Edits) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	step.Force, step.Instructions = true, "keep why the queue is read twice"
	if _, err = c.Prepare(t.Context(), th.ID, api.Any, step); err != nil {
		t.Fatal(err)
	}
	if p, err := c.Plan(t.Context(), th.ID, 3); err != nil || p.Plan.Instructions != step.Instructions {
		t.Errorf("the plan does not say what the user asked for: %+v, %v", p, err)
	}
	step.Force = false
	if _, err = c.Prepare(t.Context(), th.ID, api.Any, step); !api.IsKind(err, api.BadRequest) {
		t.Errorf("instructions for nothing: %v", err)
	}
	if _, err := c.Overflowed(t.Context(), th.ID, api.Step{Force: true, Window: 200_000}); !api.IsKind(err, api.BadRequest) {
		t.Errorf("another operation: %v", err)
	}
}
