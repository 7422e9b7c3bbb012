package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestNotesGiveAFreshWindow: over several compactions the prompt holds the user's words and rule, the
// model's notes, where the work stands, and the newest messages as they were, in one summary that is
// made anew; nothing that the assistant said before, and no model is asked, whoever is configured.
func TestNotesGiveAFreshWindow(t *testing.T) {
	never := llmtest.Script()
	c, err := palimpsest.New(palimpsest.Config{
		Policy: policy.Notes{}, Recall: &palimpsest.Recall{ContextTools: true},
		Summarizer: &model.Judged{Generator: never, Inner: model.New(nil, never)},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("shelves")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Window: 10_000, Output: 500}
	step.Messages = []thread.Message{speak(thread.User, "Paint the shelves, please. Never touch the file vendor.lock.")}
	arguments, err := json.Marshal(map[string]any{"action": "write", "text": "Drawer 3 is locked: ask Mira for the key."})
	if err != nil {
		t.Fatal(err)
	}
	var last *palimpsest.Prepared
	plans := 0
	for n := range 60 {
		if last, err = s.PrepareStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if _, ok, err := s.Answer(t.Context(), last, thread.ToolCall{ID: "n", Name: "context_note", Arguments: string(arguments)}); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		if last.Compacted != nil {
			plans++
			if n := len(last.Compacted.Summarizations); n != 1 {
				t.Errorf("%d summaries, want one", n)
			}
		}
		id := fmt.Sprintf("c%d", n)
		step.Messages = []thread.Message{
			{Role: thread.Assistant, Parts: []thread.Part{
				thread.Text{Text: fmt.Sprintf("Shelf %d was crooked, so I levelled it. ", n) + strings.Repeat("It looks well. ", 30)},
				thread.ToolCall{ID: id, Name: "Bash", Arguments: fmt.Sprintf(`{"command":"go test ./shelf%d"}`, n)},
			}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Content: []thread.Part{thread.Text{Text: fmt.Sprintf("ok  \tshelf%d\t0.01s\n", n) + strings.Repeat("a line of output\n", 60)}}}}},
		}
	}
	if plans < 3 {
		t.Fatalf("%d compactions: the test shows nothing", plans)
	}
	var text strings.Builder
	for i := range last.Prompt.Messages {
		m := &last.Prompt.Messages[i]
		text.WriteString(m.Text() + "\n")
		if r, ok := m.Result(); ok {
			text.WriteString(r.Text() + "\n")
		}
	}
	shown := text.String()
	for _, want := range []string{
		"Paint the shelves, please. Never touch the file vendor.lock.", "n1: Drawer 3 is locked", "## Where the work stands", "- test `go test ./shelf",
		"Shelf 57 was crooked", "Shelf 58 was crooked", "ok  \tshelf58", // the newest
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the prompt lacks %q:\n%.3000s", want, shown)
		}
	}
	for _, gone := range []string{"Shelf 3 was crooked", "Shelf 20 was crooked", "Shelf 40 was crooked"} {
		if strings.Contains(shown, gone) {
			t.Errorf("the prompt tells %q", gone)
		}
	}
	told := false
	for _, block := range last.Prompt.System {
		told = told || strings.HasPrefix(block.Text, render.RemovedNote)
	}
	if !told {
		t.Error("the prompt does not say that the rest can be searched")
	}
	if n := len(never.Asked()); n > 0 {
		t.Errorf("a model was asked %d times", n)
	}
}

// TestNotesFillABudget: what is asked for is met, and filled with whole messages; with nothing to
// take away it says so.
func TestNotesFillABudget(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Notes{}})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("shelves")
	step := palimpsest.Step{Profile: render.For(wire.Chat), Budget: 4_000, Messages: shelves(0, 60)}
	made, err := s.Compact(t.Context(), step, "")
	if err != nil {
		t.Fatal(err)
	}
	if made.CompactedTokens > 4_000 || made.CompactedTokens < 3_400 {
		t.Errorf("%d tokens of 4,000", made.CompactedTokens)
	}
	if r := made.Summarizations; len(r) != 1 || r[0].SummaryTokens > made.CompactedTokens/2 {
		t.Errorf("summaries %+v", r)
	}
	if _, err := s.Compact(t.Context(), palimpsest.Step{Profile: step.Profile, Budget: 40_000}, ""); !errors.Is(err, policy.ErrNothing) {
		t.Error(err)
	}
}
