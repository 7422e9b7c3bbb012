package palimpsest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// contextTools are the tools by which a model sees and steers its context.
var contextTools = []string{"context_status", "context_note", "compact_now"}

// steered is a session whose model has the context tools.
func steered(t *testing.T, config palimpsest.Config) *palimpsest.Session {
	t.Helper()
	config.Recall = &palimpsest.Recall{ContextTools: true}
	c, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c.Session("steered")
}

// chat is so many exchanges of some length, the first with the given number.
func chat(first, n int) (messages []thread.Message) {
	for i := first; i < first+n; i++ {
		messages = append(messages,
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("What is in drawer %d?", i)}}},
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: strings.Repeat(fmt.Sprintf("Drawer %d holds the maps of county %d. ", i, i), 20)}}})
	}
	return append(messages, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("Go on behind drawer %d.", first+n)}}})
}

func toolNames(tools []prompt.Tool) (names []string) {
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestContextToolsStand: with the setting the tools are in every request from the first on, with the
// same bytes, and the three new ones take at most 450 tokens; without it nothing is offered before
// the first plan.
func TestContextToolsStand(t *testing.T) {
	for _, on := range []bool{false, true} {
		c, err := palimpsest.New(palimpsest.Config{Recall: &palimpsest.Recall{ContextTools: on}})
		if err != nil {
			t.Fatal(err)
		}
		s := c.Session("t")
		var shown [][]prompt.Tool
		for n, budget := range []int{0, 0, 1500} {
			p, err := s.PrepareStep(t.Context(), palimpsest.Step{Messages: chat(10*n, 5), Budget: budget})
			if err != nil {
				t.Fatal(err)
			}
			shown = append(shown, p.Tools)
		}
		first, last := toolNames(shown[0]), toolNames(shown[2])
		if want := append([]string{"read_artifact", "recall"}, contextTools...); on && (!slices.Equal(first, want) || !slices.Equal(shown[0], shown[2])) {
			t.Errorf("first %q, last %q", first, last)
		}
		if !on && (len(first) > 0 || !slices.Equal(last, []string{"read_artifact", "recall"})) {
			t.Errorf("off: first %q, last %q", first, last)
		}
		if !on {
			continue
		}
		counter, err := token.New("o200k", nil)
		if err != nil {
			t.Fatal(err)
		}
		with, without := counter.Prompt(&prompt.Prompt{Tools: shown[0]}), counter.Prompt(&prompt.Prompt{Tools: shown[0][:2]})
		if took := with - without; took > 450 || took < 100 {
			t.Errorf("the context tools take %d tokens, want at most 450", took)
		}
	}
}

// TestNotesStandBehindTheSummary: what the model notes is shown after a compaction, word for word,
// under each policy and for each API, in no role above the assistant's; before one it is not.
func TestNotesStandBehindTheSummary(t *testing.T) {
	const window = 8000
	for _, p := range []policy.Policy{
		policy.Auto{}, policy.Notes{}, policy.Ladder{}, policy.Timeline{}, policy.Loop{ContextLimit: window, MaxOutput: 500}, policy.Session{ContextLimit: window},
		policy.Workstream{ContextSize: window}, policy.Workstream{ContextSize: window, Role: thread.User},
	} {
		for _, api := range []string{wire.Anthropic, wire.Chat} {
			t.Run(p.Name()+"/"+api, func(t *testing.T) {
				s := steered(t, palimpsest.Config{Policy: p})
				step := palimpsest.Step{Messages: chat(0, 12), Profile: render.For(api), Window: window, Output: 500}
				before, err := s.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				if text, outcome := answer(t, s, "context_note", map[string]any{"action": "write", "text": "Drawer 3 was ruled out:\n## Constraints\nit is locked.", "cites": []string{"turn 4"}}); outcome != thread.Success {
					t.Fatal(text)
				}
				const said = "n1: Drawer 3 was ruled out: ## Constraints it is locked. [turn 4]"
				again, err := s.PrepareStep(t.Context(), palimpsest.Step{Profile: step.Profile, Window: window, Output: 500})
				if err != nil || len(again.Messages) != len(before.Messages) || strings.Contains(allText(again.Prompt), said) {
					t.Errorf("before a compaction: %d messages, %d before, %v", len(again.Messages), len(before.Messages), err)
				}
				step.Messages = chat(20, 40)
				after, err := s.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(allText(after.Prompt), said); n != 1 {
					t.Fatalf("plan %d: it stands %d times: %.3000s", after.PlanVersion, n, allText(after.Prompt))
				}
				for _, m := range after.Messages {
					if strings.Contains(m.Text(), said) && (m.Role == thread.System || m.Kind != thread.Recap) {
						t.Errorf("it is of the %s: %q", m.Role, m.Kind)
					}
				}
			})
		}
	}
}

func allText(p *prompt.Prompt) string {
	var b strings.Builder
	for _, system := range p.System {
		b.WriteString(system.Text + "\n")
	}
	for i := range p.Messages {
		b.WriteString(p.Messages[i].Text() + "\n")
	}
	return b.String()
}

// TestNotes: a note cites what exists in this conversation, of this tenant; the book is bounded, and
// refuses with what can be done. Another process has the same notes.
func TestNotes(t *testing.T) {
	memory := &store.Memory{}
	config := palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory, Documents: memory}}
	s := steered(t, config)
	other := s
	if _, err := s.PrepareStep(t.Context(), palimpsest.Step{Messages: chat(0, 3)}); err != nil {
		t.Fatal(err)
	}
	log, err := memory.Load(t.Context(), "steered")
	if err != nil {
		t.Fatal(err)
	}
	id := string(log.At(1).ID)
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory, Documents: memory}, Recall: &palimpsest.Recall{ContextTools: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Session("elsewhere").PrepareStep(t.Context(), palimpsest.Step{Messages: chat(50, 3)}); err != nil {
		t.Fatal(err)
	}
	foreign, err := memory.Load(t.Context(), "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		arguments map[string]any
		outcome   thread.Outcome
		says      string
	}{
		{"by a message", map[string]any{"action": "write", "text": "Maps are in 0.", "cites": []string{id}}, thread.Success, "Noted as n1. 1 note of 40."},
		{"the same again", map[string]any{"action": "write", "text": "Maps are in 0."}, thread.Success, "Noted as n1."},
		{"the beginning of an id", map[string]any{"action": "write", "text": "So they are.", "cites": []string{id[:len(id)-3]}}, thread.Success, "Noted as n2."},
		{"turns", map[string]any{"action": "write", "text": "And in 1.", "cites": []string{"Turns 1-2", "turn 3"}}, thread.Success, "Noted as n3."},
		{"a message of another thread", map[string]any{"action": "write", "text": "x", "cites": []string{string(foreign.At(1).ID)}}, thread.Failure, "nothing here has the id"},
		{"no such turn", map[string]any{"action": "write", "text": "x", "cites": []string{"turn 99"}}, thread.Failure, "nothing here has the id"},
		{"no such artifact", map[string]any{"action": "write", "text": "x", "cites": []string{"art_0123456789abcdef"}}, thread.Failure, "nothing here has the id"},
		{"too long", map[string]any{"action": "write", "text": strings.Repeat("é", 401)}, thread.Failure, "at most 400"},
		{"empty", map[string]any{"action": "write", "text": " \n"}, thread.Failure, "text is missing"},
		{"too many cites", map[string]any{"action": "write", "text": "x", "cites": slices.Repeat([]string{id}, 9)}, thread.Failure, "at most 8"},
		{"no action", map[string]any{"text": "x"}, thread.Failure, "action is missing"},
		{"removed", map[string]any{"action": "remove", "id": "n2"}, thread.Success, "Removed."},
		{"removed twice", map[string]any{"action": "remove", "id": "n2"}, thread.Failure, `no note "n2"`},
		{"listed", map[string]any{"action": "list"}, thread.Success, "n3: And in 1. [turns 1-2, turn 3]"},
	} {
		if text, outcome := answer(t, s, "context_note", tt.arguments); outcome != tt.outcome || !strings.Contains(text, tt.says) {
			t.Errorf("%s: %s: %s", tt.name, outcome, text)
		}
	}
	for n := 0; ; n++ {
		text, outcome := answer(t, s, "context_note", map[string]any{"action": "write", "text": fmt.Sprintf("Fact %d.", n)})
		if outcome == thread.Failure {
			if n != 38 || !strings.Contains(text, `full: it holds 40`) || !strings.Contains(text, `n1 ("Maps are in 0.")`) {
				t.Errorf("after %d: %s", n, text)
			}
			break
		}
	}
	answer(t, other, "context_note", map[string]any{"action": "remove", "id": "n1"})
	if found, err := c.Notes(t.Context(), "steered"); err != nil || len(found) != 39 || found[0].ID != "n3" {
		t.Errorf("another process has %d notes: %v", len(found), err)
	}
	if found, err := c.Notes(t.Context(), "goes on", "steered"); err != nil || len(found) != 39 {
		t.Errorf("the conversation that goes on has %d notes: %v", len(found), err)
	}
	if err := s.Delete(t.Context(), func(ctx context.Context) error { return memory.Delete(ctx, "steered") }); err != nil {
		t.Fatal(err)
	}
	if found, err := c.Notes(t.Context(), "steered"); err != nil || len(found) != 0 {
		t.Errorf("deleted, and %d notes are left: %v", len(found), err)
	}
}

// TestNotesAreBoundedInTokens: forty long notes do not fit the book.
func TestNotesAreBoundedInTokens(t *testing.T) {
	s := steered(t, palimpsest.Config{})
	if _, err := s.PrepareStep(t.Context(), palimpsest.Step{Messages: chat(0, 1)}); err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		text, outcome := answer(t, s, "context_note", map[string]any{"action": "write", "text": fmt.Sprintf("%d ", n) + strings.Repeat("a long word ", 30)})
		if outcome == thread.Failure {
			if n < 15 || !strings.Contains(text, "tokens of 2000") {
				t.Errorf("after %d: %s", n, text)
			}
			return
		}
	}
	t.Error("nothing was refused")
}

// heedful is a summarizer that remembers what it was asked to keep in mind, and by whom.
type heedful struct {
	summarize.Extractive
	asked []string
}

func (h *heedful) Summarize(ctx context.Context, in summarize.Input) (summarize.Result, error) {
	h.asked = append(h.asked, string(in.InstructionsBy)+": "+in.Instructions)
	return h.Extractive.Summarize(ctx, in)
}

// TestCompactNow: the compaction that the model asks for is made with its next step, once, with what it
// is to keep in mind, as the model's words. Another one so soon is refused.
func TestCompactNow(t *testing.T) {
	events, ear := &recorder{}, &heedful{}
	s := steered(t, palimpsest.Config{Events: events, Summarizer: ear})
	step := palimpsest.Step{Messages: chat(0, 100), Window: 200_000}
	first, err := s.PrepareStep(t.Context(), step)
	if err != nil || first.PlanVersion != 0 {
		t.Fatal(first, err)
	}
	if text, _ := answer(t, s, "context_status", map[string]any{}); !strings.Contains(text, "removed so far: nothing") || !strings.Contains(text, "notes: 0 of 40") {
		t.Error(text)
	}
	if text, outcome := answer(t, s, "compact_now", map[string]any{"keep_in_mind": "the lock of drawer 3"}); outcome != thread.Success || !strings.Contains(text, "before your next request") {
		t.Fatal(text)
	}
	if text, outcome := answer(t, s, "compact_now", map[string]any{}); outcome != thread.Failure || !strings.Contains(text, "0 requests ago") {
		t.Error(text)
	}
	next, err := s.PrepareStep(t.Context(), palimpsest.Step{Messages: chat(300, 1), Window: 200_000})
	if err != nil || next.Compacted == nil || next.Tokens >= first.Tokens || next.Compacted.Instructions != "" {
		t.Fatalf("plan %d, %d tokens of %d: %v, %v", next.PlanVersion, next.Tokens, first.Tokens, next.Failed, err)
	}
	if len(ear.asked) == 0 || ear.asked[0] != "assistant: the lock of drawer 3" {
		t.Errorf("the summarizer was asked %q", ear.asked)
	}
	if n := events.count(event.Completed); n != 1 {
		t.Errorf("%d compactions", n)
	}
	m, _, err := s.Answer(t.Context(), next, thread.ToolCall{ID: "c", Name: "context_status"})
	if text := m.Text() + resultText(m); err != nil || !strings.Contains(text, "window: 200,000 tokens") || !strings.Contains(text, "next compaction: at ") || !strings.Contains(text, "in 1 compaction;") {
		t.Error(text, err)
	}
	for n := range 5 {
		if text, outcome := answer(t, s, "compact_now", map[string]any{}); (outcome == thread.Success) != (n >= 4) {
			t.Errorf("after %d more answers: %s", n, text)
		} else if outcome == thread.Success {
			break
		}
		if next, err = s.PrepareStep(t.Context(), palimpsest.Step{Messages: chat(400+n, 1), Window: 200_000}); err != nil || next.Compacted != nil {
			t.Fatal("it was made again", err)
		}
	}
}

// TestCompactNowFreesRoom: what the model asks for frees half of the request where the policy would free
// little or nothing, since the request is about as small as it would leave it.
func TestCompactNowFreesRoom(t *testing.T) {
	for _, share := range []float64{0.9, 1.1} { // of the request is the policy's target
		s := steered(t, palimpsest.Config{})
		first, err := s.PrepareStep(t.Context(), palimpsest.Step{Messages: chat(0, 100), Window: 200_000})
		if err != nil {
			t.Fatal(err)
		}
		answer(t, s, "compact_now", map[string]any{})
		next, err := s.PrepareStep(t.Context(), palimpsest.Step{Messages: chat(300, 1), Budget: int(2 * share * float64(first.Tokens))})
		if err != nil || next.Compacted == nil || next.Tokens > first.Tokens*6/10 {
			t.Errorf("target %.1f: %d tokens of %d are left: %v, %v", share, next.Tokens, first.Tokens, next.Failed, err)
		}
	}
}

func resultText(m thread.Message) string {
	r, _ := m.Result()
	return r.Text()
}

// TestReminder: the model is told once that little room is left; the text stays where it was, byte for
// byte, also in another process, until the compaction takes it away. Off, it is never there.
func TestReminder(t *testing.T) {
	const told = "[Reminder by the harness, not by the user: about "
	for _, on := range []bool{true, false} {
		memory := &store.Memory{}
		config := palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory, Documents: memory}, Recall: &palimpsest.Recall{ContextTools: true, Reminder: on}}
		var before *palimpsest.Prepared
		first, last := -1, -1
		for n := range 40 {
			c, err := palimpsest.New(config)
			if err != nil {
				t.Fatal(err)
			}
			call, result := work(n)
			messages := []thread.Message{call, result}
			if n == 0 {
				messages = append([]thread.Message{plain(thread.User, "Tidy the queue.")}, messages...)
			}
			p, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Messages: messages, Profile: render.For(wire.Anthropic), Window: 30_000, Output: 1_000})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, m := range p.Messages {
				text += m.Text() + resultText(m)
			}
			if p.Compacted != nil {
				if strings.Contains(text, told) || on && first < 0 {
					t.Errorf("step %d: compacted, and the reminder came at %d: %t", n, first, strings.Contains(text, told))
				}
				break
			}
			switch at := strings.Count(text, told); {
			case at > 1 || at == 0 && first >= 0 || !on && at > 0:
				t.Fatalf("step %d: it stands %d times", n, at)
			case at == 1 && first < 0:
				first = n
			case at == 1:
				last = n
				for i := range before.Messages {
					if before.Messages[i].Text() != p.Messages[i].Text() || resultText(before.Messages[i]) != resultText(p.Messages[i]) {
						t.Errorf("step %d: message %d changed", n, i)
					}
				}
			}
			before = p
		}
		if on && (first < 0 || last <= first) {
			t.Errorf("it came at %d, and stood until %d", first, last)
		}
	}
}
