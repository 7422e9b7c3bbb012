package storetest

import (
	"encoding/json"
	"maps"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// numbered is a plan that is told from others by a number.
func numbered(n int) *plan.Plan {
	return &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", CompactedTokens: n,
		Drops: []plan.Removal{{Span: thread.Span{MessageIDs: []thread.ID{"a"}}}}}
}

// plans is the suite of store.Plans.
var plans = map[string]func(tenant){
	"none": func(s tenant) {
		s.current("t", 0)
		_, err := s.Plans.Plan(s.Context(), "t", 1)
		s.is(store.ErrNotFound, err)
	},
	"a plan that the caller changes after its commit is not changed here": func(s tenant) { // A4
		mine := numbered(1)
		mine.Summarizations = []plan.Summarization{{
			Span: thread.Span{MessageIDs: []thread.ID{"b"}}, Stand: []plan.Replacement{{Role: thread.User, Text: "said"}},
			State:   &state.State{Tasks: []state.Item{{Text: "task"}}},
			Summary: summary.Summary{ToolOutcomes: []summary.ToolOutcome{{Tool: "x", KeyFields: thread.Fields{"k": []any{"v"}}}}},
		}}
		mine.Memory = &state.Memory{Entries: []string{"entry"}}
		want, err := json.Marshal(mine)
		s.need(err)
		s.commit("t", 0, store.Commit{Plan: mine})
		mine.CompactedTokens = 9
		mine.Drops[0].Span.MessageIDs[0] = "z"
		r := &mine.Summarizations[0]
		r.Span.MessageIDs[0], r.Stand[0].Text, r.State.Tasks[0].Text = "z", "z", "z"
		r.Summary.ToolOutcomes[0].KeyFields["k"] = "z"
		mine.Memory.Entries[0] = "z"
		mine.Add(plan.Removal{})
		one, err := s.Plans.Plan(s.Context(), "t", 1)
		s.need(err)
		for _, p := range []*plan.Plan{s.current("t", 1), one} {
			if got, err := json.Marshal(p); err != nil || string(got) != string(want) {
				s.Errorf("the plan is\n%s\nwant\n%s\n%v", got, want, err)
			}
		}
	},
	"every plan is kept, the newest is current": func(s tenant) { // A14
		for n := range 3 {
			s.commit("t", n, store.Commit{Plan: numbered(n + 1)})
		}
		for n := 1; n <= 3; n++ {
			if p, err := s.Plans.Plan(s.Context(), "t", n); err != nil || p.CompactedTokens != n || len(p.Drops) != 1 {
				s.Errorf("version %d: %+v, %v", n, p, err)
			}
		}
		if p := s.current("t", 3); p.CompactedTokens != 3 {
			s.Errorf("%+v", p)
		}
		s.current("other", 0)
	},
	"of many commits on one version one wins": func(s tenant) { // A14
		commit := func(n int) error {
			_, err := s.Plans.Commit(s.Context(), "t", 0, store.Commit{Plan: numbered(n)})
			return err
		}
		s.race(8, 1, commit)
		s.current("t", 1)
		s.conflict(commit(9), "t", 0, 1)
	},
}

// covering hides the messages at the given positions of the thread.
func covering(th *thread.Thread, positions ...int) *plan.Plan {
	p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: th.ID(), ThreadVersion: th.Len()}
	for _, i := range positions {
		p.Clearings = append(p.Clearings, plan.Clearing{Span: th.Range(i, i+1), Origin: plan.Origin{Strategy: "clear", Reason: "for a test"}})
	}
	return p
}

// commits proves that a plan, its events, its documents and the marks of the
// messages are written together or not at all.
var commits = map[string]func(tenant){
	"everything in one step": func(s tenant) { // B8, B11, D8
		th := s.append("t", 0, "0", "1", "2", "3", "4", "5")
		s.put("running", "t", 0, `{"by":"me"}`)
		s.commit("t", 0, store.Commit{
			Plan:   covering(th, 0, 1),
			Events: []event.Event{{Type: event.Cleared}, {Type: event.Completed, TokensBefore: 9, TokensAfter: 4, Details: map[string]any{"round": 1}}},
			Documents: []store.Document{
				{Kind: "running", ID: "t", Version: 1},
				{Kind: "last", ID: "t", Body: []byte(`"m1"`)},
			},
		})
		if marks := s.marks("t"); len(marks) != 2 || marks[th.At(0).ID] != 1 || marks[th.At(1).ID] != 1 {
			s.Errorf("marks %v", marks)
		}
		if e := s.events("t", 2)[1]; e.ThreadID != "t" || e.TokensBefore != 9 || e.Details["round"] != 1.0 {
			s.Errorf("event %+v", e)
		}
		s.document("running", "t", "")
		s.document("last", "t", `"m1"`)
		if info, err := s.Catalog.Thread(s.Context(), "t"); err != nil || info.Messages != 6 || info.Plans != 1 || info.Events != 2 {
			s.Errorf("%+v, %v", info, err)
		}
	},
	"a conflict writes nothing": func(s tenant) { // B11, D8
		th := s.append("t", 0, "0", "1", "2")
		try := func(version int, change func(*store.Commit)) error {
			c := store.Commit{
				Plan: covering(th, 2), Events: []event.Event{{Type: event.Completed}},
				Documents: []store.Document{{Kind: "new", ID: "t", Body: []byte(`1`)}, {Kind: "state", ID: "t", Body: []byte(`2`)}},
			}
			change(&c)
			_, err := s.Plans.Commit(s.Context(), "t", version, c)
			return err
		}
		s.conflict(try(0, func(c *store.Commit) { c.Documents[1].Version = 7 }), "state/t", 7, 0)
		s.conflict(try(3, func(*store.Commit) {}), "t", 3, 0)
		if err := try(0, func(c *store.Commit) { c.Plan = nil }); err == nil {
			s.Error("a commit without a plan was taken")
		}
		if err := try(0, func(c *store.Commit) { c.Documents[1] = c.Documents[0] }); err == nil {
			s.Error("a document was put twice in one commit")
		}
		s.current("t", 0)
		s.events("t", 0)
		s.document("new", "t", "")
		if marks := s.marks("t"); len(marks) > 0 {
			s.Errorf("marks %v", marks)
		}
	},
	"marks follow the plan": func(s tenant) { // B11
		th := s.append("t", 0, "0", "1", "2")
		for n, step := range []struct {
			hide []int
			want map[int]int // plans by the positions of messages
		}{
			{[]int{0, 1}, map[int]int{0: 1, 1: 1}},
			{[]int{1, 2}, map[int]int{1: 1, 2: 2}},
			{nil, nil},
			{[]int{0, 1}, map[int]int{0: 4, 1: 4}},
		} {
			p := covering(th, step.hide...)
			p.Drops = []plan.Removal{{Span: thread.Span{MessageIDs: []thread.ID{"not in the log"}}}}
			s.commit("t", n, store.Commit{Plan: p})
			got := map[int]int{}
			for id, version := range s.marks("t") {
				i, _ := th.Index(id)
				got[i] = version
			}
			if !maps.Equal(got, step.want) {
				s.Errorf("plan %d: marks %v, want %v", n+1, got, step.want)
			}
		}
	},
}
