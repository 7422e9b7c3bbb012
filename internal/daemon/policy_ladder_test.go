package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// shelves has an agent look at shelves, in turns of five, and calls seen after each step.
func (k *talk) shelves(steps int, seen func(n int, p *api.Prepared)) {
	k.t.Helper()
	news := []neutral.Message{said("user", "Please count what is on the shelves. Never touch shelf_0.")}
	for n := range steps {
		if n%5 == 4 {
			news = append(news, said("user", fmt.Sprintf("Now the shelves from %d on, please.", n)))
		}
		p := k.ask(news...)
		seen(n, p)
		id := fmt.Sprint("c", n)
		k.answer(calling(id, "inspect", fmt.Sprintf(`{"shelf":%d}`, n)))
		lines := 30
		if n%7 == 3 {
			lines = 130
		}
		news = []neutral.Message{resulting(id, "inspect", strings.Repeat(fmt.Sprintf("shelf_%d holds box %d of the lot zq%dx\n", n, n*7, n), lines))}
	}
}

// actionsOf walks through a log under a plan, by seed A's rules of replacement: what the
// prompt must show, as the id of a message or as the beginning of what stands there.
func actionsOf(log []neutral.Message, p *plan.Plan) (want []string) {
	actions := p.Actions()
	stands := map[plan.Ref]bool{}
	for _, m := range log {
		ref := actions[thread.ID(m.ID)]
		switch ref.Action {
		case plan.Include:
			want = append(want, m.ID)
		case plan.Clear:
			want = append(want, "tool: [inspect: success]")
		case plan.Summarize, plan.Externalize:
			if stands[ref] {
				continue
			}
			stands[ref] = true
			switch r := p.Record(ref).(type) {
			case plan.Summarization:
				want = append(want, fmt.Sprintf("assistant: [Context Summary - Turns %d-%d]\n[Summary v1.0]\n", r.Span.FirstTurn, r.Span.LastTurn))
			case plan.Externalization:
				want = append(want, fmt.Sprintf("%s: [Externalized Content - artifact:%s]\nSummary: [Summary v1.0]\n", m.Role, r.ArtifactID))
			}
		}
	}
	return want
}

// TestLadderPlansOverHTTP: through the daemon each plan of a ladder is data that names
// its messages: every span not empty, in the order of the log, all of it there, no
// message in two records. What follows from it by the seed's rules of replacement is the
// prompt: one synthetic message for each span, at its first message, of the assistant's.
// A record that stays has the same bytes, of what was dropped the words can be found,
// and another daemon makes the same plans. A2, A3, A4, A14, A16, A17, A22, F7
func TestLadderPlansOverHTTP(t *testing.T) {
	seen := map[plan.Action]bool{}
	for _, l := range []policy.Ladder{{MaxInputTokens: 9_000}, {MaxInputTokens: 9_000, DisableSummarization: true}, {MaxInputTokens: 9_000, DisableSummarization: true, DisableExternalization: true, DisableClearing: true}} {
		var plans [2][]string
		for again := range plans {
			k := talking(t, palimpsest.Config{Policy: l, Recall: &palimpsest.Recall{}}, api.Step{Window: 100_000, Output: 1_000})
			stood := map[string]string{} // what stood for a record, by its action and messages
			version := 0
			k.shelves(20, func(n int, p *api.Prepared) {
				if p.PlanVersion == 0 {
					return
				}
				inForce := k.inForce()
				if p.PlanVersion != version {
					version = p.PlanVersion
					data, err := json.Marshal(inForce)
					if err != nil {
						t.Fatal(err)
					}
					plans[again] = append(plans[again], string(data))
				}
				if again > 0 {
					return
				}
				log, at := k.log()
				k.wellFormed(inForce, log, at, seen)
				want := actionsOf(log, inForce)
				if got := p.Prompt.Messages; len(got) != len(want) {
					t.Fatalf("step %d: %d messages are shown, want %d", n, len(got), len(want))
				}
				for i, m := range p.Prompt.Messages {
					if text := m.Role + ": " + textOf(m); m.ID != want[i] && !strings.HasPrefix(text, want[i]) {
						t.Errorf("step %d, message %d: %.200q (%s), want %q", n, i, text, m.ID, want[i])
					}
				}
				for i, origin := range p.Manifest.Messages {
					if origin.Record.Action == plan.Include {
						continue
					}
					text := textOf(p.Prompt.Messages[i])
					span := fmt.Sprint(origin.Record.Action, inForce.Record(origin.Record).Covers().MessageIDs)
					if before, ok := stood[span]; ok && before != text {
						t.Errorf("step %d: for the same messages stands\n%.300s\nand stood\n%.300s", n, text, before)
					}
					stood[span] = text
				}
			})
			for _, d := range k.inForce().Drops {
				log, at := k.log()
				word := regexp.MustCompile(`zq\d+x`).FindString(textOf(log[at[d.Span.MessageIDs[d.Span.Len()-1]]]))
				hits, err := k.Recall(t.Context(), "t", word, &recall.Options{})
				if err != nil || len(hits) == 0 || word == "" || !strings.Contains(hits[0].Excerpt, word) {
					t.Errorf("%q was dropped, and is found as %+v: %v", word, hits, err)
				}
			}
		}
		if len(plans[0]) < 2 || !slices.Equal(plans[0], plans[1]) {
			t.Errorf("%+v: %d plans, and %d at another daemon that are not the same", l, len(plans[0]), len(plans[1]))
		}
	}
	for _, action := range []plan.Action{plan.Externalize, plan.Summarize, plan.Clear, plan.Drop} {
		if !seen[action] {
			t.Errorf("no record says %v: the test shows little", action)
		}
	}
}

// wellFormed holds a plan against the log that it is about.
func (k *talk) wellFormed(p *plan.Plan, log []neutral.Message, at map[thread.ID]int, seen map[plan.Action]bool) {
	k.t.Helper()
	if p.ThreadID != "t" || p.ThreadVersion == 0 || p.ThreadVersion > len(log) || p.CreatedAt != k.at || p.CompactedTokens >= p.OriginalTokens || p.Schema != plan.SchemaVersion {
		k.t.Errorf("plan of %s for %d messages: %d tokens of %d, at %v", p.ThreadID, p.ThreadVersion, p.CompactedTokens, p.OriginalTokens, p.CreatedAt)
	}
	owner := map[thread.ID]plan.Ref{}
	for _, ref := range p.Refs() {
		span := p.Record(ref).Covers()
		seen[ref.Action] = true
		if span.Len() == 0 {
			k.t.Fatalf("%v covers nothing", ref)
		}
		last := -1
		for _, id := range span.MessageIDs {
			n, ok := at[id]
			if other, taken := owner[id]; !ok || n <= last || taken {
				k.t.Fatalf("%v: message %s: there %v, at %d behind %d, %v has it too", ref, id, ok, n, last, other)
			}
			owner[id], last = ref, n
		}
		if span.FirstTurn != log[at[span.First()]].Turn || span.LastTurn != log[last].Turn {
			k.t.Errorf("%v says turns %d-%d, the log %d-%d", ref, span.FirstTurn, span.LastTurn, log[at[span.First()]].Turn, log[last].Turn)
		}
	}
	for _, r := range p.Externalizations {
		if r.ArtifactID == "" || r.RehydrateHint == "" {
			k.t.Errorf("an externalization without its artifact or hint: %+v", r)
		}
	}
	for _, r := range p.Drops {
		if r.Reason == "" {
			k.t.Errorf("a drop without a reason: %+v", r)
		}
	}
}

// TestLadderMarkOverHTTP: with the seed's own constants a ladder compacts when the
// messages take more than int(100,000 × 0.85) less system, tools, formatting, 500 and
// 2,000, and not with a token less; the sizes that the daemon tells are those of the
// whole request. A12, A13
func TestLadderMarkOverHTTP(t *testing.T) {
	for _, r := range []*palimpsest.Recall{nil, {}} { // whose tools come with the first plan
		ladderMark(t, r)
	}
}

func ladderMark(t *testing.T, r *palimpsest.Recall) {
	t.Helper()
	counter := o200k(t)
	base := &neutral.Prompt{Model: "m", System: []neutral.System{{Text: strings.Repeat("You look after a shop. ", 40)}}, Tools: []neutral.Tool{{Name: "inspect", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`)}}}
	k := talking(t, palimpsest.Config{Policy: policy.Ladder{}, Recall: r}, api.Step{Base: base, Window: 200_000, Output: 1_000})
	value, err := base.Value("base")
	if err != nil {
		t.Fatal(err)
	}
	overhead := counter.Prompt(value)
	size := func(m neutral.Message) int {
		v, err := m.Value("m")
		if err != nil {
			t.Fatal(err)
		}
		return counter.Message(&v)
	}
	room := int(100_000*0.85) - (overhead + 500 + 2_000)
	messages := 0
	put := func(words int) neutral.Message {
		m := said("user", "Please count the boxes."+strings.Repeat(" box", words))
		messages += size(m)
		return m
	}
	for messages < room-4_000 {
		k.add(put(3_000), said("assistant", "ok"))
		messages += size(said("assistant", "ok"))
	}
	p := k.ask(put(room - messages - size(said("user", "Please count the boxes."))))
	if messages != room || p.PlanVersion != 0 || p.Tokens != overhead+messages {
		t.Fatalf("the messages take %d tokens of %d, and plan %d was made; the request is told to take %d, not %d", messages, room, p.PlanVersion, p.Tokens, overhead+messages)
	}
	if p := k.ask(put(0)); p.PlanVersion != 1 || p.Tokens > overhead+room {
		t.Errorf("the messages take %d tokens more than there is room for, and plan %d leaves %d", messages-room, p.PlanVersion, p.Tokens)
	}
}

// TestLadderClearsOverHTTP: what stands for a result that was cleared is its tool, its
// outcome and its key fields as JSON with sorted keys; a result that failed says so, and
// what is ephemeral leaves nothing else. A6, A7
func TestLadderClearsOverHTTP(t *testing.T) {
	l := policy.Ladder{MaxInputTokens: 8_000, DisableSummarization: true, DisableExternalization: true, DisableDropping: true, PreserveRecentTurns: 1}
	k := talking(t, palimpsest.Config{Policy: l}, api.Step{Window: 100_000, Output: 1_000})
	news := []neutral.Message{said("user", "Order what is missing.")}
	var p *api.Prepared
	kinds := []struct {
		change func(*neutral.Part)
		want   string
	}{
		{func(r *neutral.Part) {
			r.KeyFields = thread.Fields{"order_id": json.RawMessage(`"ORD-7"`), "count": json.RawMessage(`3`)}
		}, "[order: success]\nKey data: {\"count\": 3, \"order_id\": \"ORD-7\"}"},
		{func(r *neutral.Part) {
			r.Outcome, r.KeyFields = "failure", thread.Fields{"error": json.RawMessage(`"no stock"`)}
		}, "[order: failure]\nKey data: {\"error\": \"no stock\"}"},
		{func(r *neutral.Part) { r.Durability = "ephemeral" }, "[order: success]"},
	}
	for n := range 15 {
		p = k.ask(news...)
		id := fmt.Sprint("c", n)
		k.answer(calling(id, "order", fmt.Sprintf(`{"n":%d}`, n)))
		m := resulting(id, "order", strings.Repeat(fmt.Sprintf("the order %d stands in the book\n", n), 90))
		kinds[n%3].change(&m.Parts[0])
		news = []neutral.Message{m}
	}
	cleared := 0
	for i, m := range p.Prompt.Messages {
		if origin := p.Manifest.Messages[i]; origin.Record.Action == plan.Clear {
			n := 0
			if _, err := fmt.Sscanf(m.Parts[0].CallID, "c%d", &n); err != nil {
				t.Fatal(err)
			}
			cleared |= 1 << (n % 3)
			if got := textOf(m); got != kinds[n%3].want {
				t.Errorf("result %d: %q, want %q", n, got, kinds[n%3].want)
			}
		}
	}
	if cleared != 7 {
		t.Errorf("kinds %b are cleared", cleared)
	}
}

// watched is a rung that writes down when it is asked.
type watched struct {
	strategy.Strategy
	asked *strings.Builder
}

func (w watched) Analyze(v *strategy.View) []strategy.Proposal {
	w.asked.WriteString(w.Name() + " ")
	return w.Strategy.Analyze(v)
}

// own is a rung of somebody's own, behind externalize and before summarize, that finds
// nothing to do.
type own struct{}

func (own) Name() string                               { return "own" }
func (own) Aggressiveness() int                        { return 15 }
func (own) Analyze(*strategy.View) []strategy.Proposal { return nil }
func (own) Execute(context.Context, *strategy.View, strategy.Proposal) (strategy.Executed, error) {
	return strategy.Executed{}, errors.New("nothing was proposed")
}

// withOwn is the seed's ladder with one more rung.
type withOwn struct {
	policy.Ladder
	target int
	asked  *strings.Builder
}

func (w withOwn) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	var rungs strategy.Ladder
	for _, rung := range append(w.Rungs(), own{}) {
		rungs = append(rungs, watched{rung, w.asked})
	}
	w.asked.WriteString("| ")
	return policy.Fit(ctx, s, "mine", rungs, 2*w.target, w.target)
}

// TestOwnRungOverHTTP: a daemon climbs the rungs of the seed in the order externalize,
// summarize, clear, drop, with one of somebody's own in its place, each only where those
// before it have not freed enough. A17
func TestOwnRungOverHTTP(t *testing.T) {
	var asked strings.Builder
	for _, target := range []int{5_500, 2_500, 500} {
		k := talking(t, palimpsest.Config{Policy: withOwn{policy.Ladder{MaxInputTokens: 9_000}, target, &asked}}, api.Step{Window: 100_000, Output: 1_000})
		k.shelves(14, func(int, *api.Prepared) {})
		if plans, err := k.Plans(t.Context(), "t", "", 0); err != nil || plans.Current == 0 || plans.Items[0].Policy != "mine" {
			t.Errorf("down to %d: %+v, %v", target, plans, err)
		}
	}
	order := regexp.MustCompile(`^(externalize (own (summarize (clear (drop )?)?)?)?)*$`)
	lengths := map[int]bool{}
	for _, climbed := range strings.Split(asked.String(), "| ")[1:] {
		if !order.MatchString(climbed) {
			t.Errorf("climbed %s", climbed)
		}
		lengths[strings.Count(climbed, " ")] = true
	}
	if len(lengths) < 3 {
		t.Errorf("climbed %s: the test shows little", asked.String())
	}
}
