package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// writer is a scripted summarizer for the flashcards: of what it says the second
// fact is invented and the third stands on nothing.
func writer() *llmtest.Scripted {
	turn := llmtest.Say(`{"facts":[{"text":"I write each part next","sources":[1,2,3,4,5,6]},{"text":"The parts use React 19.2","sources":[1]},{"text":"No source","sources":[]}],
		"decisions":[],"plan":[],"open_items":[],"failed_attempts":[],"tool_outcomes":[]}`)
	return llmtest.Script(slices.Repeat([]llmtest.Turn{turn}, 60)...)
}

// TestLadderRounds: over several rounds the ladder externalizes results, summarizes
// what is older than the turns that stay, and clears. The golden file holds what
// the summarizer is asked, the events, and the prompts. A16, A17, A18
func TestLadderRounds(t *testing.T) {
	r := &trace{model: writer()}
	r.summarizer = model.New(nil, r.model)
	th, _ := run(t, policy.Ladder{MaxInputTokens: 5_200, ExternalizeThreshold: 190, PreserveRecentTurns: 1}, r, 16, palimpsest.Step{})
	checkRounds(t, "ladder", r, th)
}

// TestAutoRounds is the same for the default policy.
func TestAutoRounds(t *testing.T) {
	r := &trace{model: writer()}
	r.summarizer = model.New(nil, r.model)
	th, _ := run(t, policy.Auto{}, r, 22, palimpsest.Step{Budget: 2_600})
	checkRounds(t, "auto", r, th)
}

func checkRounds(t *testing.T, name string, r *trace, th *palimpsest.Session) {
	t.Helper()
	golden.Equal(t, "testdata/"+name+".golden", r.String())
	all, err := th.Plans(t.Context())
	if err != nil || len(all) < 3 {
		t.Fatalf("%d plans, %v", len(all), err)
	}
	last := all[len(all)-1]
	if len(last.Summarizations) == 0 {
		t.Errorf("the last plan summarizes nothing: %v", last.Refs())
	}
	for _, want := range []string{"Never touch legacy/.", "I write each part next"} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("no prompt has %q", want)
		}
	}
	if strings.Contains(r.String(), "React") || strings.Contains(r.String(), "No source") {
		t.Error("what was invented is in a prompt")
	}
	if len(r.model.Asked()) < 3 {
		t.Errorf("the model was asked %d times", len(r.model.Asked()))
	}
	for _, q := range r.model.Asked() {
		if q.Options.Schema == nil || q.Options.MaxOutput != 4000 || q.Prompt.Messages[0].Role == "" {
			t.Errorf("asked with %+v", q.Options)
		}
	}
}

// TestLadderUnderItsMark: where the target cannot be reached, since rungs are switched
// off or the user's words take more, a ladder goes down as far as it can below its mark:
// the request does not stay over it. A12, F8
func TestLadderUnderItsMark(t *testing.T) {
	l := policy.Ladder{MaxInputTokens: 20_000, DisableDropping: true, DisableSummarization: true}
	messages := []thread.Message{speak(thread.User, "Look at all of it. "+strings.Repeat("Mind the rules of the house. ", 1_600))}
	for n := range 8 {
		id := fmt.Sprint("c", n)
		messages = append(messages, callTool(id, "Read", fmt.Sprintf(`{"file_path":"part%d.go"}`, n), ""), answerTool(id, "Read", strings.Repeat(fmt.Sprintf("func part%d() error\n", n), 250)))
	}
	s := stateOf(t, threadOf(t, append(messages, speak(thread.Assistant, "I have seen it."))...), nil)
	f, err := l.Plan(t.Context(), s)
	room := int(20_000*0.85) - s.Fixed - 2_500
	if err != nil || f.Tokens-s.Fixed > room || f.Tokens-s.Fixed <= room/2 {
		t.Fatalf("%d tokens of messages were there, there is room for %d: %+v, %v", s.MessageTokens, room, f, err)
	}
}
