package strategy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/strategytest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// proposed lists the positions that a rung proposes something for, in order.
func proposed(v *strategy.View, s strategy.Strategy) []int {
	var at []int
	for _, p := range s.Analyze(v) {
		i, _ := v.Thread.Index(p.Span.First())
		at = append(at, i)
	}
	return at
}

func result(id, tool, text string, durability thread.Durability, captured *thread.Determinism) thread.Message {
	m := answer(id, tool, text)
	r, _ := m.Result()
	r.Durability, r.Determinism = durability, captured
	m.Parts = []thread.Part{r}
	return m
}

// TestDurability: ephemeral and anchoring results may be cleared; replayable
// ones only while their source verifies; non-replayable ones are externalized. A7, A8
func TestDurability(t *testing.T) {
	captured := &thread.Determinism{ContentHash: "h1"}
	now := func(hash string, known bool) func(thread.ToolCall) (thread.Determinism, bool) {
		return func(thread.ToolCall) (thread.Determinism, bool) { return thread.Determinism{ContentHash: hash}, known }
	}
	cases := []struct {
		name       string
		durability thread.Durability
		captured   *thread.Determinism
		current    func(thread.ToolCall) (thread.Determinism, bool)
		clear      bool
	}{
		{"ephemeral", thread.Ephemeral, nil, nil, true},
		{"anchoring", thread.Anchoring, nil, nil, true},
		{"undeclared is anchoring", "", nil, nil, true},
		{"replayable and verified", thread.Replayable, captured, now("h1", true), true},
		{"replayable and drifted", thread.Replayable, captured, now("h2", true), false},
		{"replayable, source unknown", thread.Replayable, captured, now("h1", false), false},
		{"replayable, nobody can tell", thread.Replayable, captured, nil, false},
		{"replayable, nothing captured", thread.Replayable, nil, now("h1", true), false},
		{"replayable, nothing to compare", thread.Replayable, &thread.Determinism{ETag: "e"}, now("h1", true), false},
		{"non-replayable", thread.NonReplayable, captured, now("h1", true), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			th := log(t, say(thread.User, "Look."), call("c1", "own_tool", `{}`),
				result("c1", "own_tool", lines(1, 1600), c.durability, c.captured), say(thread.User, "Go on."))
			v := view(t, th, 100, strategy.Bare)
			v.Current = c.current
			if got := slices.Contains(proposed(v, strategy.Clear{}), 2); got != c.clear {
				t.Errorf("clear proposes it: %v", got)
			}
			// Below the threshold only what may not be cleared is externalized.
			if got := slices.Contains(proposed(v, strategy.Externalize{}), 2); got == c.clear {
				t.Errorf("externalize proposes it: %v", got)
			}
		})
	}
}

// TestDurabilityOverride: what is declared for a tool holds against the
// built-in declaration, and what a result declares against both. A9
func TestDurabilityOverride(t *testing.T) {
	th := log(t, say(thread.User, "Look."),
		call("c1", "WebFetch", `{}`), answer("c1", "WebFetch", lines(1, 1600)),
		call("c2", "WebFetch", `{"b":1}`), result("c2", "WebFetch", lines(2, 1600), thread.NonReplayable, nil),
		say(thread.User, "Go on."))
	v := view(t, th, 100, strategy.Bare)
	if got := proposed(v, strategy.Clear{}); len(got) != 0 {
		t.Errorf("a page cannot be had again, %v would be cleared", got)
	}
	v.Tools = toolpolicy.New(map[string]toolpolicy.Policy{"web_fetch": {Durability: thread.Ephemeral, ExternalizeThreshold: 100}})
	if got := proposed(v, strategy.Clear{}); !slices.Equal(got, []int{2}) {
		t.Errorf("clear proposes %v", got)
	}
	if got := proposed(v, strategy.Externalize{}); !slices.Equal(got, []int{2, 4}) {
		t.Errorf("externalize from 100 tokens proposes %v", got)
	}
	for _, d := range []thread.Durability{thread.Ephemeral, thread.Anchoring} {
		v.Tools = toolpolicy.New(map[string]toolpolicy.Policy{"web_fetch": {Durability: d, ReplayCost: toolpolicy.Expensive}})
		if got := proposed(v, strategy.Clear{}); len(got) != 0 {
			t.Errorf("%s, but expensive to have again: %v would be cleared", d, got)
		}
		if got := proposed(v, strategy.Externalize{}); !slices.Contains(got, 2) {
			t.Errorf("%s, but expensive to have again: %v would be externalized", d, got)
		}
	}
}

// TestCleared: nothing is kept of an ephemeral result but its failure, key
// fields of any other. A6, A7
func TestCleared(t *testing.T) {
	for _, durability := range []thread.Durability{thread.Ephemeral, thread.Anchoring} {
		text := "Exit code 2\nmake: *** missing rule\n" + lines(1, 1000)
		m := result("c1", "Bash", text, durability, nil)
		r, _ := m.Result()
		r.Outcome, r.KeyFields = thread.Failure, nil
		r.Structured = `{"order_id":"ORD-00017"}`
		m.Parts = []thread.Part{r}
		th := log(t, say(thread.User, "Look."), call("c1", "Bash", `{"command":"make"}`), m, say(thread.User, "Go on."))
		v := view(t, th, 100, strategy.Bare)
		v.Tools = toolpolicy.New(map[string]toolpolicy.Policy{"bash": {PreserveFields: []string{"order_id"}}})
		done, err := strategy.Clear{}.Execute(t.Context(), v, strategy.Clear{}.Analyze(v)[0])
		if err != nil {
			t.Fatal(err)
		}
		fields := done.Record.(plan.Clearing).PreservedFields
		_, kept := fields["order_id"]
		if fields["error"] == nil || kept == (durability == thread.Ephemeral) {
			t.Errorf("%s keeps %s", durability, fields)
		}
	}
}

// TestSuperseded: what a later step made out of date goes first, and says why.
func TestSuperseded(t *testing.T) {
	read := `{"file_path":"queue.go"}`
	th := log(t, say(thread.User, "Look."),
		call("c1", "Bash", `{"command":"first"}`), answer("c1", "Bash", lines(1, 5000)),
		call("c2", "Read", read), answer("c2", "Read", lines(2, 5000)),
		call("c3", "Edit", `{"file_path":"queue.go","new_string":"x"}`), answer("c3", "Edit", "ok"),
		call("c4", "Bash", `{"command":"go test"}`), answer("c4", "Bash", lines(4, 5000)),
		say(thread.User, "Again."),
		call("c5", "Bash", `{"command":"go test"}`), answer("c5", "Bash", lines(5, 5000)),
		call("c6", "Read", `{"file_path":"other.go","offset":10}`), answer("c6", "Read", lines(6, 5000)),
		call("c7", "Read", `{"file_path":"other.go","offset":90}`), answer("c7", "Read", lines(7, 5000)),
		say(thread.User, "Go on."))
	why := strategy.Superseded(th, thread.Pair(th))
	for i, want := range map[int]string{4: "the file was changed in turn 1", 8: "the same call was made again in turn 2", 2: "", 11: "", 13: "", 15: ""} {
		if why[i] != want {
			t.Errorf("message %d: %q, want %q", i, why[i], want)
		}
	}
	v := view(t, th, 2000, strategy.Bare)
	if got := proposed(v, strategy.Externalize{}); len(got) < 3 || got[0] != 4 || got[1] != 8 || got[2] != 2 {
		t.Errorf("the order is %v", got)
	}
}

// TestOversizeInTail: an output in the protected tail that nothing would fit
// beside is externalized; the user's words and smaller outputs are not.
func TestOversizeInTail(t *testing.T) {
	th := log(t, say(thread.User, "Look."),
		call("c1", "Bash", `{"command":"cat log"}`), answer("c1", "Bash", lines(1, 40_000)),
		call("c2", "Bash", `{"command":"ls"}`), answer("c2", "Bash", lines(2, 400)))
	v := strategytest.View(th, render.Profile{}, 4000)
	v.Protect(strategy.Generous)
	v.Tail = 1
	if got := proposed(v, strategy.Externalize{}); !slices.Equal(got, []int{2}) {
		t.Fatalf("externalize proposes %v", got)
	}
	done, err := strategy.Externalize{}.Execute(t.Context(), v, strategy.Externalize{}.Analyze(v)[0])
	if err != nil || done.Record.Made().TokensAfter > v.Room/5 {
		t.Errorf("%v, %+v", err, done)
	}
	if got := proposed(v, strategy.Clear{Arguments: true}); len(got) != 0 {
		t.Errorf("clear reaches into the tail: %v", got)
	}
	if got := proposed(v, strategy.Drop{}); len(got) != 0 {
		t.Errorf("drop reaches into the tail: %v", got)
	}
}

// TestLeastGain: a page is externalized where the pointer frees at least 200 tokens, and not below.
func TestLeastGain(t *testing.T) {
	for size, want := range map[int]bool{900: false, 1600: true} {
		th := log(t, say(thread.User, "Look."), call("c1", "WebFetch", `{}`), answer("c1", "WebFetch", lines(1, size)), say(thread.User, "Go on."))
		v := view(t, th, 100, strategy.Bare)
		if got := slices.Contains(proposed(v, strategy.Externalize{}), 2); got != want {
			t.Errorf("a page of %d tokens: %v, want %v", v.Sizes[2], got, want)
		}
	}
}

// TestAttachedInTail: of what the user attached at most 1,500 tokens stay, however large the room.
func TestAttachedInTail(t *testing.T) {
	attached := say(thread.User, lines(1, 200_000))
	attached.Kind = thread.Attached
	v := strategytest.View(log(t, say(thread.User, "Look."), attached), render.Profile{}, 40_000)
	v.Protect(strategy.Generous)
	v.Tail = 1
	all := strategy.Externalize{}.Analyze(v)
	if len(all) != 1 || all[0].Room != 1500 {
		t.Fatalf("%+v", all)
	}
}

// TestManyOutputsInTail: the outputs of one step leave the room to the summary, however
// many it has asked for; small ones stay whole.
func TestManyOutputsInTail(t *testing.T) {
	output := func(n int) string {
		var b strings.Builder
		for i := range 60 {
			fmt.Fprintf(&b, "build/%d/part%d.go: undefined: handle%dOrder%d\n", n, i, i*7, n)
		}
		return b.String()
	}
	messages := session(t, 100, 1000).Messages()
	asks := thread.Message{Role: thread.Assistant}
	answers := []thread.Message{answer("z0", "Bash", "On branch main.")}
	for n := range 6 {
		asks.Parts = append(asks.Parts, thread.ToolCall{ID: fmt.Sprint("z", n), Name: "Bash", Arguments: fmt.Sprintf(`{"command":"make all%d"}`, n)})
		if n > 0 {
			answers = append(answers, answer(fmt.Sprint("z", n), "Bash", output(n)))
		}
	}
	for level := range strategy.Bare {
		v := view(t, log(t, slices.Concat(messages, []thread.Message{asks}, answers)...), 4000, level)
		records := climb(t, strategy.Auto(), v)
		outputs := 0
		for _, r := range records {
			if r.Action() == plan.Externalize {
				outputs += r.Made().TokensAfter
			}
		}
		if outputs > v.Room*35/100 || v.Summarized() < v.Room*45/100 {
			t.Errorf("level %d: outputs take %d and summaries %d of %d tokens", level, outputs, v.Summarized(), v.Room)
		}
		small := v.Thread.Len() - 6
		if slices.ContainsFunc(records, func(r plan.Record) bool { return slices.Contains(r.Covers().MessageIDs, v.Thread.At(small).ID) }) {
			t.Errorf("level %d: the small output does not stay whole", level)
		}
	}
}

// TestArguments: long arguments of old, completed calls are shortened, never
// those of the last call of a tool, of an aborted call, or short ones.
func TestArguments(t *testing.T) {
	long := func(n int) string {
		return fmt.Sprintf(`{"file_path":"f%d.go","content":"%s"}`, n, strings.Repeat("x", 2000))
	}
	th := log(t, say(thread.User, "Write."),
		call("c1", "Write", long(1)), answer("c1", "Write", "ok"),
		call("c2", "Write", long(2)), // aborted
		say(thread.User, "Again."),
		call("c3", "Write", `{"file_path":"f3.go","content":"x"}`), answer("c3", "Write", "ok"),
		call("c4", "Note", long(4)), answer("c4", "Note", "ok"),
		call("c5", "Write", long(5)), answer("c5", "Write", "ok"),
		say(thread.User, "Go on."))
	v := view(t, th, 100, strategy.Bare)
	calls := slices.DeleteFunc(proposed(v, strategy.Clear{Arguments: true}), func(i int) bool { return th.At(i).Role == thread.Tool })
	if !slices.Equal(calls, []int{1}) {
		t.Errorf("arguments of %v would be shortened", calls)
	}
	if got := proposed(v, strategy.Clear{}); slices.ContainsFunc(got, func(i int) bool { return th.At(i).Role != thread.Tool }) {
		t.Errorf("without Arguments, calls are touched: %v", got)
	}
}

// TestNoGain: a record that would not be smaller than what it replaces is an
// error, never growth.
func TestNoGain(t *testing.T) {
	th := log(t, say(thread.User, "Look."), call("c1", "Bash", `{"command":"ls"}`), answer("c1", "Bash", "a"), say(thread.User, "Go on."))
	v := view(t, th, 10, strategy.Bare)
	for _, s := range []strategy.Strategy{strategy.Clear{}, strategy.Externalize{}, strategy.Summarize{}} {
		span := th.Range(2, 3)
		if _, err := s.Execute(t.Context(), v, strategy.Proposal{Strategy: s.Name(), Span: span, Room: 1000}); !errors.Is(err, strategy.ErrNoGain) {
			t.Errorf("%s: %v", s.Name(), err)
		}
	}
}

// TestProtection: each level protects less than the one before; task, last
// words of the user and open calls stay at every one of them.
func TestProtection(t *testing.T) {
	th := session(t, 20, 1000)
	th, err := th.Append(say(thread.Assistant, "On it."), say(thread.User, "And now?"), call("open", "Bash", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	n := th.Len()
	tail := 0
	for _, level := range strategy.Protections() {
		v := view(t, th, 2000, level)
		if v.Tail < tail {
			t.Errorf("level %d: the tail begins at %d, before %d", level, v.Tail, tail)
		}
		tail = v.Tail
		for what, i := range map[string]int{"the task": 0, "the last user message": n - 2, "the open call": n - 1} {
			if !v.Pinned[i] || v.Free(i) || v.Shrinkable(i) {
				t.Errorf("level %d: %s is not protected", level, what)
			}
		}
	}
	if tail != n {
		t.Errorf("the last level protects a tail from %d of %d", tail, n)
	}
	if v := view(t, th, 30, strategy.Bare); v.Pinned[0] && v.Sizes[0] > v.Room/2 {
		t.Error("a task larger than the room is pinned")
	}
}

// TestReminderWithItsOutput: what a harness said below an output goes into the summary with
// it, also where there would be room for the reminder alone.
func TestReminderWithItsOutput(t *testing.T) {
	messages := []thread.Message{say(thread.User, "Read the notes.")}
	for n := range 6 {
		id := fmt.Sprint("c", n)
		reminder := say(thread.User, fmt.Sprintf("<system-reminder>Token usage: %d000.</system-reminder>", n))
		reminder.Kind = thread.Injected
		messages = append(messages, call(id, "Read", fmt.Sprintf(`{"file_path":"note%d.md"}`, n)), answer(id, "Read", strings.Repeat("signal token queue ", 600)), reminder)
	}
	v := view(t, log(t, append(messages, say(thread.Assistant, "Now the last one."))...), 3400, strategy.Bare)
	hidden := map[thread.ID]bool{}
	for _, r := range climb(t, strategy.Auto(), v) {
		for _, id := range r.Covers().MessageIDs {
			hidden[id] = r.Action() == plan.Summarize
		}
	}
	alone := 0
	for i := 3; i < v.Thread.Len(); i += 3 {
		if hidden[v.Thread.At(i-1).ID] && !hidden[v.Thread.At(i).ID] {
			alone++
		}
	}
	if len(hidden) == 0 || alone > 0 {
		t.Errorf("%d reminders stand alone, %d messages are hidden", alone, len(hidden))
	}
}

// TestReasonNumbers: reasons write numbers like the reports that they stand in.
func TestReasonNumbers(t *testing.T) {
	th := session(t, 3, 12_000)
	for _, p := range (strategy.Externalize{}).Analyze(view(t, th, 100, strategy.Bare)) {
		if p.Reason != "over the threshold of 1,000 tokens" {
			t.Errorf("reason %q", p.Reason)
		}
	}
	v := view(t, log(t, say(thread.User, "Look."), call("c1", "Bash", `{}`), answer("c1", "Bash", lines(1, 40_000))), 3000, strategy.LastStep)
	v.ExternalizeLarge([]int{2})
	if r := v.Records(); len(r) != 1 || !strings.Contains(r[0].Made().Reason, ",") {
		t.Errorf("records %v", r)
	}
}
