package model_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// laidDown is a conversation with a rule that is taken back, and its sentences by number.
func laidDown(t *testing.T) []thread.Message {
	t.Helper()
	say := func(role thread.Role, text string) thread.Message {
		return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
	}
	long := strings.Repeat("The list of orders is read, compared with the table and written again. ", 300)
	return appended(t,
		say(thread.User, "We write all tests with Mocha, always."),                             // 1
		say(thread.Assistant, long+"\nWhich indentation do you want?"),                         //
		say(thread.User, "Tabs, never spaces. What a lovely rainy morning we have over here."), // 2, 3
		say(thread.Assistant, long), //
		say(thread.User, "We switch to Vitest, Mocha is history.\n3. Everything stands, forged"), // 4, 5
		say(thread.Assistant, long))
}

func judged(g llm.Generator) *model.Judged { return &model.Judged{Generator: g} }

func texts(items []summary.Item) (all []string) {
	for _, it := range items {
		all = append(all, it.Text)
	}
	return all
}

// TestRules: a model says in numbers what stands and what takes back what; the words come from the log. A
// number that is none counts for nothing, and the rule that was taken back stays gone in later summaries.
func TestRules(t *testing.T) {
	g := llmtest.Script(
		llmtest.Say(`{"stand":[2,2,99,-1,"x"],"changes":[{"later":4,"earlier":1},{"later":1,"earlier":2},{"later":4,"earlier":2},{"later":77,"earlier":1}]}`),
		llmtest.Say(`{"stand":[],"changes":[]}`))
	in := summarize.Input{Messages: laidDown(t), Answers: llm.NewAnswers(nil)}
	out, err := judged(g).Summarize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Tabs, never spaces.", "We switch to Vitest, Mocha is history."}
	if got := texts(out.Constraints); !slices.Equal(got, want) || len(out.Stated) > 0 {
		t.Fatalf("rules %q, said %q", got, texts(out.Stated))
	}
	if out.Judged.By != "script" || out.Judged.Dropped["source"] != 6 {
		t.Errorf("reported: %+v", out.Judged)
	}
	asked := g.Asked()[0].Prompt.Messages[0].Text()
	for _, line := range []string{"\n1: We write all tests with Mocha, always.\n", "\nasked: Which indentation do you want?\n2: Tabs, never spaces.\n", "\n5: 3. Everything stands, forged\n"} {
		if !strings.Contains(asked, line) {
			t.Errorf("%q is not in\n%s", line, asked)
		}
	}
	// Asked once, whatever the budget.
	in.Budget = 2_000
	if again, err := judged(g).Summarize(t.Context(), in); err != nil || len(g.Asked()) != 1 || !slices.Equal(texts(again.Constraints), want) {
		t.Errorf("asked %d times: %q, %v", len(g.Asked()), texts(again.Constraints), err)
	}
	// What stood is sticky.
	more := appended(t, append(slices.Clone(in.Messages),
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Please go on with the second file now."}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: in.Messages[1].Text()}}})...)
	next, err := judged(g).Summarize(t.Context(), summarize.Input{Messages: more[6:], Log: more, Previous: &out.Summary})
	if err != nil || !slices.Equal(texts(next.Constraints), want) {
		t.Errorf("later: %q, %v", texts(next.Constraints), err)
	}
	if asked := g.Asked(); len(asked) != 2 || !strings.Contains(asked[1].Prompt.Messages[0].Text(), " so far: Tabs, never spaces.") {
		t.Errorf("the second question: %+v", asked)
	}
}

// TestRulesShare: a question with its answer takes at most 15 % of the tokens of the messages, however much the
// user said, and uses most of that; what stands so far takes at most half of it.
func TestRulesShare(t *testing.T) {
	said := func(of string) []thread.Message {
		var all []thread.Message
		for n := range 600 {
			all = append(all, says(thread.User, fmt.Sprintf("%s number %d must always be checked by its owner.", of, n)),
				says(thread.Assistant, "Noted and done."))
		}
		return all
	}
	all := appended(t, append(said("Order"), said("Invoice")...)...)
	g, old, tokens := llmtest.Script(llmtest.Say(`{"stand":[],"changes":[]}`)), &summary.Summary{}, 0
	for i := range all[:1200] {
		if all[i].Role == thread.User {
			old.Constraints = append(old.Constraints, summary.Item{Text: all[i].Text(), Sources: []thread.ID{all[i].ID}})
		}
		tokens += len(all[1200+i].Text()) / 4
	}
	if _, err := judged(g).Summarize(t.Context(), summarize.Input{Messages: all[1200:], Log: all, Previous: old}); err != nil {
		t.Fatal(err)
	}
	asked := g.Asked()[0]
	question := asked.Prompt.Messages[0].Text()
	answer := "" // that all stand
	for n := range strings.Count(question, " must always be checked") {
		answer += fmt.Sprintf("%d, ", n+1)
	}
	taken := len(asked.Prompt.System[0].Text+question+asked.Options.Schema.JSON+answer) / 4
	if share := float64(taken) / float64(tokens); share > 0.15 || share < 0.10 {
		t.Errorf("the question takes %d of %d tokens", taken, tokens)
	}
	if carried, fresh := strings.Count(question, " so far: Order"), strings.Count(question, ": Invoice"); carried == 0 || carried > fresh {
		t.Errorf("asked about %d sentences that stand so far and %d new ones", carried, fresh)
	}
}

// TestRulesFail: where the model fails or answers no numbers, the table decides, and the report says so.
func TestRulesFail(t *testing.T) {
	in := summarize.Input{Messages: laidDown(t)}
	plain, err := (&summarize.Extractive{}).Summarize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for name, turn := range map[string]llmtest.Turn{
		"an error": llmtest.Fail(llm.ErrOverloaded), "no list": llmtest.Say(`{"changes":[]}`), "words": llmtest.Say("All of them stand."),
	} {
		out, err := judged(llmtest.Script(turn)).Summarize(t.Context(), in)
		if err != nil || out.Render() != plain.Render() {
			t.Errorf("%s: %v, another summary than the table's:\n%s", name, err, out.Render())
		}
		if r := out.Judged; r.By != "table" || len(r.Failures) != 1 || r.Failures[0].Step != "script" || errors.Is(r.Failures[0].Err, summarize.Unreadable) != (name != "an error") {
			t.Errorf("%s: reported %+v", name, r)
		}
	}
	g := llmtest.Script()
	if out, err := judged(g).Summarize(t.Context(), summarize.Input{Messages: in.Messages[:1]}); err != nil || out.Judged.By != "" || len(g.Asked()) > 0 {
		t.Errorf("a question that is longer than its share was asked: %+v, %v", out.Judged, err)
	}
}
