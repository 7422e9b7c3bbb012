package truth_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestPlaces: what is said of the places of a search is held against its result and the edits.
func TestPlaces(t *testing.T) {
	grep := does("Grep", map[string]any{"pattern": "old("}, "/w/a.go:1:old(1)\n/w/a.go:7:old(1)\n/w/b.go:2:old(2)")
	all := log(t, user("go"), grep)
	var ids []thread.ID
	for _, m := range all {
		ids = append(ids, m.ID)
	}
	places := func(p ...state.Place) summary.Summary {
		return summary.Summary{Work: state.Work{Searches: []state.Search{{Query: "old(", Places: p, Sources: ids[1:]}}}}
	}
	a, b := state.Place{Path: "/w/a.go", Text: "old(1)", Lines: []int{1, 7}}, state.Place{Path: "/w/b.go", Text: "old(2)", Lines: []int{2}}
	changed := func(p state.Place, n int) state.Place { p.Changed = n; return p }
	edited := list(user("go"), grep, edit("/w/b.go", "old(2)", "new(2)"))
	run(t, []row{
		{"shown", list(user("go"), grep), places(a, b), "work: search", right},
		{"not shown", list(user("go"), grep), places(state.Place{Path: "/w/c.go", Text: "old(1)", Lines: []int{1}}), "work: search", wrong},
		{"another line", list(user("go"), grep), places(state.Place{Path: "/w/b.go", Text: "old(2)", Lines: []int{3}}), "work: search", wrong},
		{"left", list(user("go"), grep), places(a, b), "work: place of a search", right},
		{"changed", edited, places(changed(b, 1)), "work: place of a search", right},
		{"told as left", edited, places(b), "work: place of a search", wrong},
		{"told as changed", edited, places(changed(a, 1)), "work: place of a search", wrong},
		{"a line more", list(user("go"), grep, edit("/w/b.go", "old(2)", "old(2)\nmore")), places(changed(b, 1)), "work: place of a search", wrong},
	})
}
