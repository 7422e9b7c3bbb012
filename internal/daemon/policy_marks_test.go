package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// turn is a message of a request of the Chat API.
type turn struct{ Role, Content string }

// TestMarksOfTheDocuments: with the documents' own constants, through the daemon, each
// policy compacts with the message by which the document's estimate reaches its mark,
// and not before; what follows has the document's form, and the model was asked with its
// options. B2, B4, B6, D1, D3, D5, D9, E1, E3, E5, E6, E7
func TestMarksOfTheDocuments(t *testing.T) {
	const done = "I finished part 1 of the shop."
	session := llmtest.Script(llmtest.Say("#### Completed Work\n- " + done))
	extract := llmtest.Turn{Reply: llm.Reply{Stop: wire.StopEnd, JSON: `{"summary":{"key_facts":["` + done + `"],"conversation_flow":[],"open_threads":[]},"state_delta":{}}`}}
	workstream := llmtest.Script(extract, extract, extract, extract) // one for each chunk of 120,000 characters
	loop := llmtest.Script(llmtest.Say(done))
	sum := func(messages []string, each func(chars int) int) (total int) {
		for _, m := range messages {
			total += each(utf8.RuneCountInString(m))
		}
		return total
	}
	heads := func(n int, first ...string) func(t *testing.T, shown []turn, all int) {
		return func(t *testing.T, shown []turn, all int) {
			t.Helper()
			kept := n
			if kept == 0 {
				kept = all * 2 / 5 // about 40 %
			}
			if len(shown) != len(first)/2+kept {
				t.Fatalf("%d messages are shown, want %d and the newest %d of %d", len(shown), len(first)/2, kept, all)
			}
			for i := 0; i < len(first); i += 2 {
				if m := shown[i/2]; m.Role != first[i] || !strings.HasPrefix(m.Content, first[i+1]) {
					t.Errorf("message %d: %s %.200q, want %s %q", i/2, m.Role, m.Content, first[i], first[i+1])
				}
			}
		}
	}
	for _, tt := range []struct {
		name   string
		policy policy.Policy
		due    func(messages []string) bool
		form   func(t *testing.T, shown []turn, all int)
		says   string
		model  *llmtest.Scripted
	}{
		{"session", policy.Session{Model: session}, func(m []string) bool {
			return sum(m, func(n int) int { return 2 + (n+3)/4 }) >= 93_600
		}, heads(10, "assistant", "## Session Summary (Compaction Round 1)"), done, session},
		{"workstream", policy.Workstream{Model: workstream}, func(m []string) bool {
			return (sum(m, func(n int) int { return n })+2)/3 >= 140_000
		}, heads(6, "system", "Compacted context summary:"), "KEY FACTS:\n- " + done, workstream},
		{"loop", policy.Loop{Model: loop}, func(m []string) bool {
			return float64(sum(m, func(n int) int { return n/4 + 4 })) > 0.80*(200_000-16_384)
		}, heads(0, "user", "[COMPACT SUMMARY]\n", "assistant", "Understood."), done, loop},
		{"loop without an answer", policy.Loop{Model: llmtest.Script(llmtest.Fail(llm.ErrTimeout))}, func(m []string) bool {
			return float64(sum(m, func(n int) int { return n/4 + 4 })) > 0.80*(200_000-16_384)
		}, heads(0, "user", "[COMPACT SUMMARY]\n[Context truncated. Earlier conversation contained ", "assistant", "Understood."), " messages about: Please build part 0", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, daemon.Config{Compactor: palimpsest.Config{Policy: tt.policy}}).client(t, "")
			if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
				t.Fatal(err)
			}
			var all []string
			add := func(text string) neutral.Message {
				role := []string{"user", "assistant"}[len(all)%2]
				all = append(all, text)
				return said(role, text)
			}
			for n := range 200 {
				news := add(fmt.Sprintf("Please build part %d of the shop. %s", n, strings.Repeat("It has shelves. ", 690)))
				p, err := c.Prepare(t.Context(), "t", api.Any, api.Step{API: wire.Chat, Base: &neutral.Prompt{Model: "m"}, Output: 16_384, Messages: []neutral.Message{news}})
				if err != nil {
					t.Fatal(err)
				}
				if due := tt.due(all); due != (p.PlanVersion == 1) {
					t.Fatalf("after %d messages: due by the document %v, plan %d", len(all), due, p.PlanVersion)
				}
				if p.PlanVersion == 0 {
					if _, err := c.Finish(t.Context(), "t", api.Any, api.Answer{Messages: []neutral.Message{add(fmt.Sprintf("I finished part %d of the shop. %s", n, strings.Repeat("The hall is bright. ", 450)))}}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				var sent struct{ Messages []turn }
				if err := json.Unmarshal(p.Body, &sent); err != nil {
					t.Fatal(err)
				}
				shown := sent.Messages
				tt.form(t, shown, len(all))
				if !strings.Contains(shown[0].Content, tt.says) {
					t.Errorf("no %q in %.600q", tt.says, shown[0].Content)
				}
				if last := shown[len(shown)-1].Content; last != all[len(all)-1] {
					t.Errorf("the newest message is %.100q", last)
				}
				break
			}
			if tt.model == nil {
				return
			}
			asked := tt.model.Asked()
			if len(asked) == 0 {
				t.Fatal("nothing was compacted")
			}
			text, o := asked[0].Prompt.Messages[0].Text(), asked[0].Options
			switch tt.name {
			case "session":
				if o.Temperature == nil || *o.Temperature != 0.3 || o.MaxOutput != 1_000 || !strings.Contains(text, "None - this is the first compaction round.") || !strings.Contains(text, "\n- Maximum 800 tokens\n") || !strings.Contains(text, "[...truncated...]") {
					t.Errorf("asked with %+v: %.500s", o, text)
				}
			case "workstream":
				if len(asked) != 4 || !strings.Contains(asked[1].Prompt.Messages[0].Text(), "<previous-summary>KEY FACTS:\n- "+done) {
					t.Errorf("asked %d times, the second time on top of %.200s", len(asked), asked[min(1, len(asked)-1)].Prompt.Messages[0].Text())
				}
				for _, tag := range []string{"<context-compaction-input>\n<previous-summary></previous-summary>\n<existing-workstream-state>", "<new-messages>1. user: Please build part 0"} {
					if !strings.Contains(text, tag) {
						t.Errorf("no %q in %.500s", tag, text)
					}
				}
			case "loop":
				if o.MaxOutput != 16_384 {
					t.Errorf("asked with %+v", o)
				}
			}
		})
	}
}
