package policy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// summarizeInHalves cuts messages in so many parts, between which no call waits for its result.
func summarizeInHalves(messages []thread.Message, parts int) [][]thread.Message {
	var all [][]thread.Message
	answered, open := map[string]bool{}, map[string]bool{}
	for i := range messages {
		if r, ok := messages[i].Result(); ok {
			answered[r.CallID] = true
		}
	}
	from := 0
	for i := range messages {
		for _, c := range messages[i].Calls() {
			if answered[c.ID] {
				open[c.ID] = true
			}
		}
		if r, ok := messages[i].Result(); ok {
			delete(open, r.CallID)
		}
		if len(open) == 0 && i+1 >= (len(all)+1)*len(messages)/parts {
			all = append(all, messages[from:i+1])
			from = i + 1
		}
	}
	if from < len(messages) {
		all = append(all, messages[from:])
	}
	return all
}

// TestTenRounds: over ten compactions of one conversation, with a model that answers as
// the agent's own did in that session, the tenth prompt holds the task and the latest
// request in the user's words, and what was decided and done: of the sentences of the
// agents' own summaries at least 96 %, and of those of one at least 95 % or all but
// six. F1, F2
func TestTenRounds(t *testing.T) {
	all, most := ownSummaries(t), 2
	if corpus.Long() {
		most = 12
	}
	slices.SortFunc(all, func(a, b ownSummary) int { return len(b.messages) - len(a.messages) })
	stated, kept := map[string]int{}, map[string]int{}
	for _, own := range all[:min(most, len(all))] {
		facts, open := lists(own.text)
		object, err := json.Marshal(map[string]any{
			"summary": map[string]any{"key_facts": facts, "conversation_flow": []string{}, "open_threads": open}, "state_delta": map[string]any{},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []policy.Policy{
			policy.Workstream{Model: told{json: string(object)}, Tail: 2, ContextSize: 400_000},
			policy.Loop{Model: told{text: own.text}, Preserve: 0.01, ContextLimit: 400_000},
		} {
			t.Run(p.Name()+" "+own.name, func(t *testing.T) {
				var log []thread.Message
				var current *plan.Plan
				var f *policy.Fitted
				rounds := 0
				for _, part := range summarizeInHalves(own.messages, 10) {
					rounds++
					log = append(append(log, part...), speak(thread.User, fmt.Sprintf("Round %d: go on with that, please.", rounds)))
					for range 8 { // the request stands before what is kept whole
						log = append(log, speak(thread.Assistant, "I go on."))
					}
					s := stateOf(t, threadOf(t, log...), current)
					s.Forced, s.Round, s.Instructions = true, rounds-1, own.asked
					var err error
					if f, err = p.Plan(t.Context(), s); err != nil {
						t.Fatalf("round %d: %v", rounds, err)
					}
					current = f.Plan
				}
				if rounds < 10 {
					t.Fatalf("%d rounds", rounds)
				}
				var prompt, said strings.Builder
				for i := range f.Prompt.Messages {
					prompt.WriteString(f.Prompt.Messages[i].Text() + "\n")
				}
				for _, stand := range current.Summarizations[0].Stand {
					said.WriteString(stand.Text + "\n")
				}
				first := log[slices.IndexFunc(log, func(m thread.Message) bool { return m.StartsTurn() && strings.TrimSpace(m.Text()) != "" })].Text()
				if task := evened(first); !strings.Contains(evened(prompt.String()), task[:min(len(task), 200)]) {
					t.Errorf("the task is not in the tenth prompt: %.200s", task)
				}
				if want := fmt.Sprintf("Round %d: go on with that, please.", rounds); !strings.Contains(prompt.String(), want) {
					t.Error("the latest request is not in the tenth prompt")
				}
				sentences := statements(own.text)
				if p.Name() == "workstream" {
					sentences = slices.Concat(facts, open)
				}
				n, lost := inPlace(sentences, said.String())
				t.Logf("%d rounds over %d messages: %d of %d sentences", rounds, len(log), n, len(sentences))
				stated[p.Name()] += len(sentences)
				kept[p.Name()] += n
				if 100*n < 95*len(sentences) && len(lost) > 6 {
					t.Errorf("lost, among others: %.400q", lost[:min(3, len(lost))])
				}
			})
		}
	}
	for name, n := range stated {
		t.Logf("%s: %d of %d sentences", name, kept[name], n)
		if 100*kept[name] < 96*n {
			t.Errorf("%s: %d of %d sentences", name, kept[name], n)
		}
	}
}
