package palimpsest_test

import (
	"errors"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestPin: what the user has pinned is shown, in this plan and after the next
// compaction, until it is given free.
func TestPin(t *testing.T) {
	read, err := transcript.Open("testdata/sessions/fix-retry.claude-code.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	messages := uncopied.Messages(read.Transcripts[0].Thread)
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, step := c.Session("pins"), palimpsest.Step{Budget: 20_000}
	if _, err := s.Append(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	p, err := s.Compact(t.Context(), step, "")
	if err != nil {
		t.Fatal(err)
	}
	hidden := p.Summarizations[0].Span.MessageIDs[10]
	action := func() plan.Action {
		plans, err := s.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return plans[len(plans)-1].Actions()[hidden].Action
	}
	if action() == plan.Include {
		t.Fatal("the message is shown already")
	}
	if err := s.Pin(t.Context(), hidden, true); err != nil {
		t.Fatal(err)
	}
	if got := action(); got != plan.Include {
		t.Errorf("pinned, and the plan has it under %s", got)
	}
	if p, err = s.Compact(t.Context(), step, ""); err != nil {
		t.Fatal(err)
	}
	if got := action(); got != plan.Include {
		t.Errorf("after a compaction the pinned message is under %s", got)
	}
	if len(p.Pinned) != 1 || p.Pinned[0] != hidden || p.CompactedTokens > 20_000 {
		t.Errorf("pinned: %v, %d tokens", p.Pinned, p.CompactedTokens)
	}
	if err := s.Pin(t.Context(), hidden, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Undo(t.Context(), 1); err != nil { // what was pinned later goes with the plan
		t.Fatal(err)
	}
	if got := action(); got == plan.Include {
		t.Error("given free and undone, the message is shown")
	}
	if err := s.Pin(t.Context(), "nothing", true); !errors.Is(err, thread.ErrUnknownID) {
		t.Errorf("a message that is not there: %v", err)
	}
}
