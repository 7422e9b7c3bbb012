package palimpsest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLadderNamesWhatItExternalized: a summary over results that were externalized before
// names the newest of them, and each name can be read; and a question about a file that
// was externalized brings its content back for the turn. A5, A10
func TestLadderNamesWhatItExternalized(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{MaxInputTokens: 14_000}, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Messages: []thread.Message{plain(thread.User, "Look after the warehouses.")}}
	depots := []string{"frankfurt", "hamburg", "lisbon", "gdansk", "turin", "malmo", "leeds", "nantes"}
	aside := map[thread.ID]bool{}
	summaries, named := 0, map[string]bool{}
	for n := range 60 {
		if n%4 == 0 && n > 0 {
			step.Messages = append(step.Messages, plain(thread.User, fmt.Sprintf("Now the one of %s.", depots[n%len(depots)])))
		}
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if p.Compacted != nil {
			for _, e := range p.Compacted.Externalizations {
				aside[e.Span.First()] = true
			}
			for _, r := range p.Compacted.Summarizations {
				held := 0
				for _, id := range r.Span.MessageIDs {
					if aside[id] {
						held++
					}
				}
				if held == 0 {
					continue
				}
				if summaries++; len(r.Summary.Artifacts) == 0 || len(r.Kept) > 0 {
					t.Errorf("a summary over %d results that were externalized names %d of them; %d must be kept", held, len(r.Summary.Artifacts), len(r.Kept))
				}
				for _, a := range r.Summary.Artifacts {
					if named[a.ArtifactID] = true; !strings.Contains(a.Description, "(depot/") {
						t.Errorf("%s is described as %q", a.ArtifactID, a.Description)
					}
				}
			}
		}
		id := fmt.Sprint("c", n)
		file := fmt.Sprintf("depot/%s%d.go", depots[n%len(depots)], n)
		call := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":%q}`, file)}}}
		if err := s.FinishStep(t.Context(), nil, llm.Usage{}, call); err != nil {
			t.Fatal(err)
		}
		text := "package depot\n" + strings.Repeat(fmt.Sprintf("func rate%d(weight int) int { return weight*%d }\n", n, n), 90)
		step.Messages = []thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}}}}}
	}
	if summaries < 10 || len(named) < 5 {
		t.Errorf("%d summaries, %d names: the test shows little", summaries, len(named))
	}
	for id := range named {
		if text, outcome := answer(t, s, "read_artifact", map[string]any{"artifact_id": id}); outcome != thread.Success || !strings.Contains(text, "package depot") {
			t.Errorf("%s reads %.100q", id, text)
		}
	}
	step.Messages = append(step.Messages, plain(thread.Assistant, "All of them are looked after."))
	p, err := s.PrepareStep(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	current := p.Compacted
	if current == nil {
		all, err := s.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		current = all[len(all)-1]
	}
	for _, e := range current.Externalizations {
		_, file, _ := strings.Cut(e.RehydrateHint, "(depot/")
		files = append(files, strings.TrimSuffix(file, ")"))
	}
	if len(files) < 4 {
		t.Fatalf("%d results are externalized", len(files))
	}
	for n, question := range []string{"What rates did depot/%s have?", "Which functions are in %s?", "What was in %s of the depot?", "Did depot/%s say more than that?"} {
		step.Messages = []thread.Message{plain(thread.User, fmt.Sprintf(question, files[n]))}
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		back := ""
		for _, m := range p.Messages {
			if strings.Contains(m.Text(), "[Rehydrated Content") {
				back = m.Text()
			}
		}
		if i := strings.TrimLeft(strings.TrimSuffix(files[n], ".go"), "abcdefghijklmnopqrstuvwxyz"); !strings.Contains(back, "func rate"+i+"(") {
			t.Errorf("%s brings back %.200q", fmt.Sprintf(question, files[n]), back)
		}
		if err := s.FinishStep(t.Context(), nil, llm.Usage{}, plain(thread.Assistant, "I see.")); err != nil {
			t.Fatal(err)
		}
	}
}
