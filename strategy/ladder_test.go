package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/strategytest"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// spy notes when its rung is climbed, and that it never executes anything when
// all fits already.
type spy struct {
	strategy.Strategy
	climbed *[]string
}

func (s spy) Execute(ctx context.Context, v *strategy.View, p strategy.Proposal) (strategy.Executed, error) {
	if v.Over() <= 0 {
		*s.climbed = append(*s.climbed, s.Name()+" in vain")
	}
	return s.Strategy.Execute(ctx, v, p)
}

func (s spy) Analyze(v *strategy.View) []strategy.Proposal {
	*s.climbed = append(*s.climbed, s.Name())
	return s.Strategy.Analyze(v)
}

func spied(l strategy.Ladder, climbed *[]string) strategy.Ladder {
	var out strategy.Ladder
	for _, rung := range l {
		out = append(out, spy{rung, climbed})
	}
	return out
}

func view(t *testing.T, th *thread.Thread, room int, level strategy.Protection) *strategy.View {
	t.Helper()
	v := strategytest.View(th, render.Profile{}, room)
	v.Protect(level)
	return v
}

func climb(t *testing.T, l strategy.Ladder, v *strategy.View) []plan.Record {
	t.Helper()
	fits, err := l.Climb(t.Context(), v)
	if !fits || err != nil {
		t.Fatalf("the ladder came to %d tokens for a room of %d: %v", v.Total(), v.Room, err)
	}
	return v.Records()
}

// session is a task, then steps of reading with output of size bytes each and
// words about it, and a last question.
func session(t *testing.T, steps, size int) *thread.Thread {
	t.Helper()
	messages := []thread.Message{say(thread.User, "Mend the queue: it drops orders.")}
	for n := range steps {
		id := fmt.Sprint("c", n)
		messages = append(messages,
			call(id, "Bash", fmt.Sprintf(`{"command":"make step%d"}`, n)),
			answer(id, "Bash", lines(n, size)),
			say(thread.Assistant, fmt.Sprintf("Step %d shows that worker %d loses order ORD-%05d when it restarts.", n, n, n)),
			say(thread.User, fmt.Sprintf("Good. Go on with part %d.", n)))
	}
	return log(t, messages...)
}

func lines(n, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "worker %d took order %d and gave it to carrier %d\n", n, i, i%7)
	}
	return b.String()
}

func log(t *testing.T, messages ...thread.Message) *thread.Thread {
	t.Helper()
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

func say(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

func call(id, tool, arguments string) thread.Message {
	return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: tool, Arguments: arguments}}}
}

func answer(id, tool, text string) thread.Message {
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
		CallID: id, Tool: tool, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}},
	}}}
}

// TestSeedOrder: externalize, summarize, clear, and drop only when these could do no
// more a second time. A17
func TestSeedOrder(t *testing.T) {
	var climbed []string
	v := view(t, session(t, 12, 2000), 60, strategy.Bare)
	spied(policy.Ladder{}.Rungs(), &climbed).Climb(t.Context(), v)
	if got := strings.Join(climbed, " "); got != "externalize summarize clear externalize summarize clear drop" {
		t.Errorf("climbed %s", got)
	}
}

// TestAutoOrder: what is too large, then the old part, then results by rule. A17
func TestAutoOrder(t *testing.T) {
	var climbed []string
	v := view(t, session(t, 12, 2000), 60, strategy.Bare)
	spied(strategy.Auto(), &climbed).Climb(t.Context(), v)
	if got := strings.Join(climbed, " "); got != "externalize summarize externalize clear externalize summarize externalize clear drop" {
		t.Errorf("climbed %s", got)
	}
}

// own is a user's rung between externalize and clear. It does nothing.
type own struct{}

func (own) Name() string                               { return "own" }
func (own) Aggressiveness() int                        { return 15 }
func (own) Analyze(*strategy.View) []strategy.Proposal { return nil }
func (own) Execute(context.Context, *strategy.View, strategy.Proposal) (strategy.Executed, error) {
	return strategy.Executed{}, errors.New("nothing was proposed")
}

// TestOwnRung: a user's rung takes its place by its aggressiveness, wherever it
// stands in the list. A17
func TestOwnRung(t *testing.T) {
	var climbed []string
	v := view(t, session(t, 12, 2000), 60, strategy.Bare)
	spied(append(policy.Ladder{}.Rungs(), own{}), &climbed).Climb(t.Context(), v)
	if got := strings.Join(climbed, " "); got != "externalize own summarize clear externalize own summarize clear drop" {
		t.Errorf("climbed %s", got)
	}
}

// TestStops: no rung is climbed, and no further proposal executed, once it
// fits. A17
func TestStops(t *testing.T) {
	th := session(t, 6, 8000)
	var climbed []string
	v := view(t, th, 1<<20, strategy.Generous)
	if records := climb(t, spied(strategy.Auto(), &climbed), v); len(records) != 0 || len(climbed) != 0 {
		t.Errorf("what fits was compacted: %v, climbed %v", records, climbed)
	}
	whole := v.Total()
	v = view(t, th, whole-1000, strategy.Generous)
	records := climb(t, spied(strategy.Auto(), &climbed), v)
	if len(records) != 1 || len(climbed) != 2 || records[0].Action() != plan.Summarize {
		t.Errorf("one summary is enough, %d records by %v", len(records), climbed)
	}
}

// TestGivesBack: what the last proposal frees too much goes to what was taken
// before, the newest first.
func TestGivesBack(t *testing.T) {
	th := log(t,
		say(thread.User, "Look."),
		call("c1", "Bash", `{"command":"a"}`), answer("c1", "Bash", lines(1, 400)),
		call("c2", "Bash", `{"command":"b"}`), answer("c2", "Bash", lines(2, 8000)),
		call("c3", "Bash", `{"command":"c"}`), answer("c3", "Bash", "done"),
		say(thread.User, "Go on."))
	v := view(t, th, 0, strategy.Bare)
	v.Room = v.Total() - 200
	records := climb(t, strategy.Ladder{strategy.Clear{}}, v)
	if len(records) != 1 || records[0].Covers().First() != th.At(4).ID {
		t.Errorf("the small result was not given back: %v", records)
	}
}

// TestUtilisation: where there is material, at least 85 % of the room is used,
// whatever the budget. (The seed's ladder summarizes everything but three turns
// to a quarter, and uses what that leaves.) A17, A21
func TestUtilisation(t *testing.T) {
	th := session(t, 60, 3000)
	whole := view(t, th, 0, strategy.Bare).Total()
	for _, percent := range []int{10, 20, 35, 50, 70, 90} {
		v := view(t, th, whole*percent/100, strategy.Generous)
		climb(t, strategy.Auto(), v)
		if used := float64(v.Total()) / float64(v.Room); used < 0.85 {
			t.Errorf("at %d %%: %.3f of the room is used", percent, used)
		}
	}
}

// TestFailuresAreTold: a rung that cannot execute is gone past; what it said is
// in the error only when in the end it does not fit. A17
func TestFailuresAreTold(t *testing.T) {
	th := session(t, 12, 8000)
	broken := errors.New("broken")
	v := view(t, th, 40, strategy.Bare)
	fits, err := strategy.Ladder{failing{strategy.Externalize{}, broken}}.Climb(t.Context(), v)
	if fits || !errors.Is(err, broken) {
		t.Errorf("fits %v, error %v", fits, err)
	}
	v = view(t, th, 1000, strategy.Bare)
	climb(t, strategy.Ladder{failing{strategy.Externalize{}, broken}, strategy.Drop{}}, v)

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := strategy.Auto().Climb(gone, view(t, th, 1000, strategy.Bare)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled climb returned %v", err)
	}
}

type failing struct {
	strategy.Strategy
	err error
}

func (f failing) Execute(context.Context, *strategy.View, strategy.Proposal) (strategy.Executed, error) {
	return strategy.Executed{}, f.err
}

// TestClimbHolds: the records of a climb together are a valid plan over any
// thread, at every level of protection, and the view's sum is theirs. A4, A17
func TestClimbHolds(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		v := strategytest.View(th, render.For(rapid.SampledFrom(threadgen.APIs).Draw(rt, "api")), 0)
		v.Room = v.Total() * rapid.IntRange(5, 95).Draw(rt, "percent") / 100
		v.Protect(rapid.SampledFrom(strategy.Protections()).Draw(rt, "protection"))
		ladder := strategy.Auto()
		if rapid.Bool().Draw(rt, "seed") {
			ladder = policy.Ladder{}.Rungs()
		}
		before := v.Total()
		fits, _ := ladder.Climb(t.Context(), v)
		if fits != (v.Total() <= v.Room) {
			rt.Fatalf("fits is %v with %d tokens for %d", fits, v.Total(), v.Room)
		}
		p := plan.Plan{ThreadID: th.ID(), ThreadVersion: th.Version()}
		freed := 0
		for _, r := range v.Records() {
			p.Add(r)
			freed += r.Made().Freed()
		}
		if err := p.Validate(th); err != nil {
			rt.Fatal(err)
		}
		if freed != before-v.Total() {
			rt.Fatalf("the records say that %d tokens were freed, the view %d", freed, before-v.Total())
		}
	})
}
