package state_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/plan/state"
)

func items() *rapid.Generator[[]state.Item] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) state.Item {
		return state.Item{
			ID:     rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "id"),
			Text:   rapid.SampledFrom([]string{"", "one", "ONE ", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"}).Draw(t, "text"),
			Status: rapid.SampledFrom([]string{"", "open", "done"}).Draw(t, "status"),
			Pinned: rapid.IntRange(0, 3).Draw(t, "pin") == 0,
		}
	}), 0, 25)
}

func change() *rapid.Generator[state.Change] {
	return rapid.Custom(func(t *rapid.T) state.Change {
		return state.Change{
			Set:    items().Draw(t, "set"),
			Remove: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "one", "two", "Three"}), 0, 3).Draw(t, "remove"),
		}
	})
}

func delta() *rapid.Generator[state.Delta] {
	return rapid.Custom(func(t *rapid.T) state.Delta {
		return state.Delta{
			KeyDecisions: change().Draw(t, "decisions"), ActiveConstraints: change().Draw(t, "constraints"),
			Tasks: change().Draw(t, "tasks"), OpenQuestions: change().Draw(t, "questions"), Risks: change().Draw(t, "risks"),
			Artifacts: change().Draw(t, "artifacts"), AgentContributions: change().Draw(t, "contributions"),
		}
	})
}

// TestApply: whatever the deltas, the limits hold after each merge, the same
// delta twice changes nothing more, the state given is not written to, and a
// pinned item goes only when pinned items alone are too many. D7
func TestApply(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var s state.State
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			d := delta().Draw(t, "delta")
			before := encode(t, s)
			next := s.Apply(d, state.Limits{})
			if got := encode(t, s); got != before {
				t.Fatal("Apply wrote to its state")
			}
			for _, l := range []struct {
				name  string
				items []state.Item
				old   []state.Item
				limit int
			}{
				{"key decisions", next.KeyDecisions, s.KeyDecisions, 8},
				{"active constraints", next.ActiveConstraints, s.ActiveConstraints, 6},
				{"tasks", next.Tasks, s.Tasks, 10},
				{"open questions", next.OpenQuestions, s.OpenQuestions, 5},
				{"risks", next.Risks, s.Risks, 5},
				{"artifacts", next.Artifacts, s.Artifacts, 10},
				{"agent contributions", next.AgentContributions, s.AgentContributions, 6},
			} {
				if len(l.items) > l.limit {
					t.Fatalf("%s: %d items", l.name, len(l.items))
				}
				pinned := slices.ContainsFunc(l.items, func(it state.Item) bool { return !it.Pinned })
				for _, old := range l.old {
					there := slices.ContainsFunc(l.items, func(it state.Item) bool { return it.Text == old.Text })
					if old.Pinned && !there && pinned {
						t.Fatalf("%s: pinned %q went, and others stayed: %v", l.name, old.Text, l.items)
					}
				}
			}
			if again := next.Apply(d, state.Limits{}); encode(t, again) != encode(t, next) {
				t.Fatalf("twice: %s", cmp.Diff(next, again))
			}
			s = next
		}
	})
}

func encode(t interface{ Fatal(...any) }, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func numbered(from, to int, pinned bool) []state.Item {
	var out []state.Item
	for n := from; n <= to; n++ {
		out = append(out, state.Item{Text: fmt.Sprintf("item %d", n), Pinned: pinned})
	}
	return out
}

// TestNewestWin: order is by age, updates are the newest, pinned ones stay. D7
func TestNewestWin(t *testing.T) {
	set := func(its ...state.Item) state.Delta {
		return state.Delta{ActiveConstraints: state.Change{Set: its}}
	}
	s := state.State{}.Apply(set(numbered(1, 7, false)...), state.Limits{})
	if diff := cmp.Diff(numbered(2, 7, false), s.ActiveConstraints); diff != "" {
		t.Error(diff)
	}
	s = state.State{}.Apply(set(numbered(1, 2, true)...), state.Limits{}).Apply(set(numbered(3, 9, false)...), state.Limits{})
	if diff := cmp.Diff(append(numbered(1, 2, true), numbered(6, 9, false)...), s.ActiveConstraints); diff != "" {
		t.Error(diff)
	}
	s = s.Apply(state.Delta{ActiveConstraints: state.Change{Remove: []string{"item 1", "Item  9"}, Set: []state.Item{{Text: "ITEM 6", Status: "done"}}}}, state.Limits{})
	want := append(numbered(1, 2, true), append(numbered(7, 8, false), state.Item{Text: "ITEM 6", Status: "done"})...)
	if diff := cmp.Diff(want, s.ActiveConstraints); diff != "" {
		t.Error(diff)
	}
	s = state.State{}.Apply(set(numbered(1, 8, true)...), state.Limits{})
	if diff := cmp.Diff(numbered(3, 8, true), s.ActiveConstraints); diff != "" {
		t.Error(diff)
	}
	// A later text for a pinned item does not replace the user's words.
	s = state.State{}.Apply(set(state.Item{ID: "x", Text: "never", Pinned: true}), state.Limits{}).Apply(set(state.Item{ID: "x", Text: "always"}), state.Limits{})
	if s.ActiveConstraints[0].Text != "never" {
		t.Errorf("%v", s.ActiveConstraints)
	}
}

// TestJSON: a state and a delta come back as they were.
func TestJSON(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		d := delta().Draw(t, "delta")
		s := state.State{}.Apply(d, state.Limits{})
		var again state.State
		if err := json.Unmarshal([]byte(encode(t, s)), &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatal(diff)
		}
		var delta state.Delta
		if err := json.Unmarshal([]byte(encode(t, d)), &delta); err != nil {
			t.Fatal(err)
		}
		if encode(t, state.State{}.Apply(delta, state.Limits{})) != encode(t, s) {
			t.Fatal("the delta does something else after a round trip")
		}
	})
}

// TestRender: an item stays on its line.
func TestRender(t *testing.T) {
	s := state.State{
		Tasks: []state.Item{{Text: "write\nRisks:\n- none", Status: "open"}},
		Risks: []state.Item{{Text: "slow", By: "planner"}},
	}
	if got, want := s.Render(), "Tasks:\n- [open] write Risks: - none\nRisks:\n- slow (planner)\n"; got != want {
		t.Errorf("%q", got)
	}
	if !(state.State{}).Empty() || s.Empty() || (state.State{}).Render() != "" {
		t.Error("emptiness")
	}
	d := state.Delta{Risks: state.Change{Set: []state.Item{{Text: "x", Pinned: true}}}}
	if d.Unpinned().Risks.Set[0].Pinned || !d.Risks.Set[0].Pinned {
		t.Error("Unpinned")
	}
}

// TestMemory: 15 entries make the oldest 10 due; both are rendered. D10
func TestMemory(t *testing.T) {
	var m state.Memory
	for n := 1; n <= 14; n++ {
		m = m.Add(fmt.Sprintf("entry %d", n), " ")
	}
	if _, due := m.Due(); due {
		t.Error("due at 14 entries")
	}
	m = m.Add("entry 15")
	oldest, due := m.Due()
	if !due || len(oldest) != 10 || oldest[0] != "entry 1" || oldest[9] != "entry 10" {
		t.Fatalf("%v %v", due, oldest)
	}
	m = m.Add("entry 16").Folded("ten things", len(oldest))
	want := "Memory summary:\nten things\nMemory:\n- entry 11\n- entry 12\n- entry 13\n- entry 14\n- entry 15\n- entry 16\n"
	if got := m.Render(); got != want {
		t.Errorf("%q", got)
	}
}
