package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
)

// TestLadderBringsBackOverHTTP: with the seed's own limits what the agent names comes
// back for that turn: three artifacts at most, none over 4,000 tokens, no more than 8,000
// together, none again for two turns, and by its whole id alone. It stands at the end of
// the prompt and nowhere in the log, no request is over its limit, and its turn
// externalizes nothing. A10, A11, F8
func TestLadderBringsBackOverHTTP(t *testing.T) {
	const limit = 32_000
	l := policy.Ladder{MaxInputTokens: limit, DisableSummarization: true, DisableClearing: true, DisableDropping: true}
	k := talking(t, palimpsest.Config{Policy: l, Recall: &palimpsest.Recall{}}, api.Step{Window: 200_000, Output: 1_000})
	counter := o200k(t)
	k.ask(said("user", "Look at every list."))
	for n, lines := range []int{1_000, 1_000, 1_000, 200, 200, 200, 200, 200} { // some 7,000 and 1,400 tokens
		id := fmt.Sprint("c", n)
		k.answer(calling(id, "inspect", fmt.Sprintf(`{"list":%d}`, n)))
		k.ask(resulting(id, "inspect", strings.Repeat(fmt.Sprintf("list %d holds one more box\n", n), lines)))
	}
	k.answer(said("assistant", "I have seen all lists."))
	p := k.ask(said("user", "Well done."))
	if _, err := k.Compact(t.Context(), "t", api.Any, api.Compact{Step: api.Step{Budget: 6_000}}); err != nil {
		t.Fatal(err)
	}
	var large, small []string
	for _, e := range k.inForce().Externalizations {
		if e.TokensBefore > 4_000 {
			large = append(large, e.ArtifactID)
		} else {
			small = append(small, e.ArtifactID)
		}
	}
	if len(large) != 3 || len(small) != 4 {
		t.Fatalf("%d large results are externalized and %d small ones; the request takes %d tokens", len(large), len(small), p.Tokens)
	}
	turn := func(words string) (back []string, p *api.Prepared) {
		t.Helper()
		k.answer(said("assistant", words))
		before := len(k.inForce().Externalizations)
		p = k.ask(said("user", "Go on."))
		total := 0
		shown := p.Prompt.Messages
		for i, m := range shown {
			_, text, found := strings.Cut(textOf(m), "[Rehydrated Content - artifact:")
			if !found {
				continue
			}
			id, _, _ := strings.Cut(text, "]")
			size := counter.Text(textOf(m))
			total += size
			back = append(back, id)
			if size > 4_000 || i < len(shown)-4 {
				t.Errorf("%s takes %d tokens, as message %d of %d", id, size, i, len(shown))
			}
		}
		if total > 8_000 || p.Tokens > limit {
			t.Errorf("%d tokens come back, and the request takes %d", total, p.Tokens)
		}
		if last := shown[len(shown)-1]; textOf(last) != "Go on." {
			t.Errorf("the prompt ends with %.100q", textOf(last))
		}
		if len(back) > 0 && len(k.inForce().Externalizations) != before {
			t.Error("a turn that brought content back externalized more")
		}
		return back, p
	}
	for _, tt := range []struct {
		name, words string
		want        []string
	}{
		{"nothing", "I count.", nil},
		{"a part of an id", "I look at x" + small[0] + " and " + small[1] + "y.", nil},
		{"four small ones", "I look at " + strings.Join(small, ", ") + ".", small[:3]},
		{"again the turn after", "Once more: " + small[0] + " and " + small[3] + ".", small[3:]},
		{"again, later", "Once more: " + small[0] + ".", small[:1]},
		{"three large ones", "I look at " + strings.Join(large, ", ") + ".", large[:2]},
	} {
		if back, p := turn(tt.words); !slices.Equal(back, tt.want) {
			t.Errorf("%s: %q come back, want %q; the request takes %d tokens", tt.name, back, tt.want, p.Tokens)
		}
	}
	log, _ := k.log()
	if strings.Contains(textsOf(log), "[Rehydrated Content") {
		t.Error("what came back stands in the log")
	}
}

// interrupted is a policy with another writer: while it decides for the first time,
// somebody adds to the memory block, which makes a plan.
type interrupted struct {
	policy.Policy
	once *atomic.Bool
	by   func()
}

func (p interrupted) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	if p.once.CompareAndSwap(false, true) {
		p.by()
	}
	return p.Policy.Plan(ctx, s)
}

// TestConflictOverHTTP: a plan that was decided for a version which another daemon
// replaced meanwhile is not committed over it: it is decided again, on top, and told as
// the second attempt. A14
func TestConflictOverHTTP(t *testing.T) {
	var other *talk
	by := func() {
		if _, err := other.Remember(t.Context(), "t", api.Any, "The release is on Friday."); err != nil {
			t.Error(err)
		}
	}
	k := talking(t, palimpsest.Config{Policy: interrupted{policy.Ladder{MaxInputTokens: 9_000}, &atomic.Bool{}, by}}, api.Step{Window: 100_000, Output: 1_000})
	beside := *k
	other = &beside
	other.connect(palimpsest.Config{})
	version := 0
	for n := 0; version == 0; n++ {
		version = k.ask(talkOf(12, "queue")...).PlanVersion
		k.answer(said("assistant", "ok"))
	}
	if p := k.inForce(); version != 2 || p.Memory == nil || len(p.Summarizations) == 0 {
		t.Errorf("plan %d: memory %+v, %d summaries", version, p.Memory, len(p.Summarizations))
	}
	told := k.told.of(event.PlanCommitted)
	if len(told) != 1 || told[0].Details["attempt"] != 2 || told[0].Details["version"] != 2 {
		t.Errorf("told: %+v", told)
	}
}

var (
	placeName  = regexp.MustCompile(`\bD-\d{4}\b`)
	stockThere = regexp.MustCompile(`\b(D-\d{4}): stock (\d+)\b`)
)

// TestTaskGoesOnOverHTTP: an agent that remembers nothing itself, and decides by the
// prompts of the daemon alone, finishes its task over several compactions under each
// policy: it visits every place, and next to none of them twice. A21
func TestTaskGoesOnOverHTTP(t *testing.T) {
	var names []string
	for n := range 24 {
		names = append(names, fmt.Sprintf("D-%04d", 1000+37*n))
	}
	task := "Visit each depot once and keep the list of stocks. Depots: " + strings.Join(names, ", ") + "."
	for name, p := range map[string]policy.Policy{"ladder": policy.Ladder{MaxInputTokens: 9_000}, "auto": policy.Auto{}, "session": policy.Session{ContextLimit: 16_000, Keep: 4}, "timeline": policy.Timeline{MaxTokens: 6_000},
		"workstream": policy.Workstream{ContextSize: 7_000}, "loop": policy.Loop{ContextLimit: 8_000, MaxOutput: 1_000}} {
		t.Run(name, func(t *testing.T) {
			step := api.Step{Window: 100_000, Output: 1_000}
			if name == "auto" {
				step.Budget = 5_000
			}
			k := talking(t, palimpsest.Config{Policy: p}, step)
			news := []neutral.Message{said("user", task)}
			visits := map[string]int{}
			plans := 0
			for n := range 60 {
				made := k.ask(news...)
				plans = made.PlanVersion
				all := textsOf(made.Prompt.Messages)
				for _, m := range made.Prompt.Messages {
					for _, part := range m.Parts {
						all += part.Arguments + "\n"
					}
				}
				_, list, found := strings.Cut(all, "Depots: ")
				if !found {
					t.Fatalf("step %d: the task is not in the prompt", n)
				}
				list, _, _ = strings.Cut(list, ".")
				known := map[string]string{}
				for _, m := range stockThere.FindAllStringSubmatch(all, -1) {
					known[m[1]] = m[2]
				}
				next, done := "", []string{}
				for _, place := range placeName.FindAllString(list, -1) {
					if stock, ok := known[place]; ok {
						done = append(done, place+": stock "+stock)
					} else if next == "" {
						next = place
					}
				}
				if next == "" {
					break
				}
				visits[next]++
				id := fmt.Sprint("c", n)
				todos, err := json.Marshal(map[string]any{"todos": done})
				if err != nil {
					t.Fatal(err)
				}
				k.answer(neutral.Message{Role: "assistant", Parts: []neutral.Part{
					{Type: neutral.TextPart, Text: "So far: " + strings.Join(done, "; ") + ". I visit " + next + "."},
					{Type: neutral.ToolCallPart, CallID: id, Tool: "visit_depot", Arguments: fmt.Sprintf(`{"depot":%q,"noted":%q}`, next, todos)},
				}})
				news = []neutral.Message{resulting(id, "visit_depot", fmt.Sprintf("%s: stock %d\n%s", next, 100+n, strings.Repeat("The hall is bright, and the floor is swept each day.\n", 40)))}
			}
			total := 0
			for _, n := range visits {
				total += n
			}
			if len(visits) != len(names) || total > len(names)+2 || plans < 2 {
				t.Errorf("%d of %d depots in %d visits, %d plans", len(visits), len(names), total, plans)
			}
		})
	}
}
