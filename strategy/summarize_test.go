package strategy_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestRunsKeepPairs: a result that came behind a pinned message is summarized
// together with its call, or neither is: each run is decided by itself. A4
func TestRunsKeepPairs(t *testing.T) {
	text := func(s string) []thread.Part { return []thread.Part{thread.Text{Text: s}} }
	long := strings.Repeat("The queue was drained before the lease ran out. ", 60)
	th, err := thread.New("late").Append(
		thread.Message{Role: thread.User, Parts: text("fix the queue")},
		thread.Message{Role: thread.Assistant, Parts: append(text(long), thread.ToolCall{ID: "c1", Name: "Bash", Arguments: `{"command":"make"}`})},
		thread.Message{Role: thread.User, Parts: text("hurry up")}, // pinned below
		thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "c1", Tool: "Bash", Outcome: thread.Success, Content: text("ok")}}},
		thread.Message{Role: thread.Assistant, Parts: text("done")},
		thread.Message{Role: thread.User, Parts: text("and now?")},
		thread.Message{Role: thread.Assistant, Parts: text("all is well")},
	)
	if err != nil {
		t.Fatal(err)
	}
	count := func(s string) int { return (len(s) + 3) / 4 }
	size := func(m *thread.Message) int {
		n := 4 + count(m.Text())
		if r, ok := m.Result(); ok {
			n += count(r.Text())
		}
		return n
	}
	sizes := make([]int, th.Len())
	for i, m := range th.All() {
		sizes[i] = size(m)
	}
	v := strategy.NewView(strategy.Given{Thread: th, Room: 300, Count: size, CountText: count, Sizes: sizes})
	v.Protect(strategy.LastStep)
	v.Pinned[2], v.Anchored[2] = true, true
	for _, p := range (strategy.Summarize{}).Analyze(v) {
		covered := map[thread.ID]bool{}
		for _, id := range p.Span.MessageIDs {
			covered[id] = true
		}
		if covered[th.At(1).ID] != covered[th.At(3).ID] {
			t.Errorf("the call is in the run: %v, its late result: %v", covered[th.At(1).ID], covered[th.At(3).ID])
		}
	}
}

// TestRatioBounds: a summary takes its share of what it replaces and no more, however much
// room is left over in the end. What it may not use shows more messages as they are.
func TestRatioBounds(t *testing.T) {
	for _, k := range []struct {
		size int
		full float64
	}{{4000, 0.9}, {400, 0.7}} { // of small messages there is little left that a summary may replace
		th := session(t, 60, k.size)
		for _, ratio := range []float64{0.02, 0.05, 0.25} {
			for _, share := range []int{30, 50, 80, 98} {
				v := view(t, th, 0, strategy.Bare)
				v.Room = v.Total() * share / 100
				for _, r := range climb(t, strategy.Ladder{strategy.Summarize{Keep: cut.LastTurns{N: 3}, Ratio: ratio}, strategy.Drop{}}, v) {
					if made := r.Made(); r.Action() == plan.Summarize && float64(made.TokensAfter) > ratio*float64(made.TokensBefore) {
						t.Errorf("steps of %d bytes, %g of a room of %d %%: a summary of %d tokens for %d", k.size, ratio, share, made.TokensAfter, made.TokensBefore)
					}
				}
				if used := float64(v.Total()) / float64(v.Room); used < k.full {
					t.Errorf("steps of %d bytes, %g of a room of %d %%: only %.2f of it is used", k.size, ratio, share, used)
				}
			}
		}
	}
}

// TestUnitsStayWhole: no rung takes one message of a hosted call's unit, neither its large result
// on arrival nor as the part of a summary that there is room for.
func TestUnitsStayWhole(t *testing.T) {
	program := thread.Message{Role: thread.Assistant, Parts: []thread.Part{
		thread.Opaque{Kind: "program", Text: "read(1)", Call: "p1", Tool: "program"},
		thread.ToolCall{ID: "c1", Name: "Read", Arguments: `{"path":"a"}`, Parent: "p1"},
	}}
	ends := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Opaque{Kind: "program_output", Text: "1", Call: "p1", Answers: true, Tool: "program"}}}
	th := log(t, say(thread.User, "Look."), say(thread.Assistant, lines(1, 900)), say(thread.User, "Count."),
		program, answer("c1", "Read", lines(1, 9000)), ends, say(thread.User, "And now?"), say(thread.Assistant, lines(1, 9)), say(thread.User, "Go on."))
	partial := func(v *strategy.View, room int) {
		for _, r := range v.Records() {
			if i, _ := th.Index(r.Covers().First()); r.Covers().Len() < 3 && i >= 3 && i <= 5 {
				t.Errorf("room %d: %s takes %d of the unit's messages", room, r.Made().Strategy, r.Covers().Len())
			}
		}
	}
	for room := 100; room < 2800; room += 50 {
		v := view(t, th, room, strategy.Bare)
		_, _ = strategy.Auto().Climb(t.Context(), v)
		partial(v, room)
		v = view(t, th, room, strategy.Bare)
		v.ExternalizeLarge([]int{4})
		partial(v, room)
	}
}
