package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestPlans runs the suite of store.Plans; open gives an empty store each time.
func TestPlans(t *testing.T, open func(testing.TB) store.Plans) {
	ctx := t.Context()
	made := func(tokens int) *plan.Plan {
		return &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", CompactedTokens: tokens,
			Drops: []plan.Removal{{Span: thread.Span{MessageIDs: []thread.ID{"a"}}}}}
	}
	t.Run("none", func(t *testing.T) {
		s := open(t)
		if p, version, err := s.Current(ctx, "t"); p != nil || version != 0 || err != nil {
			t.Errorf("%v, %d, %v", p, version, err)
		}
		if _, err := s.Plan(ctx, "t", 1); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	})
	t.Run("a plan that the caller changes is not changed here", func(t *testing.T) { // A4
		s := open(t)
		mine := made(1)
		mine.Summarizations = []plan.Summarization{{
			Span: thread.Span{MessageIDs: []thread.ID{"b"}}, Stand: []plan.Replacement{{Role: thread.User, Text: "said"}},
			State:   &state.State{Tasks: []state.Item{{Text: "task"}}},
			Summary: summary.Summary{ToolOutcomes: []summary.ToolOutcome{{Tool: "x", KeyFields: thread.Fields{"k": []any{"v"}}}}},
		}}
		mine.Memory = &state.Memory{Entries: []string{"entry"}}
		want, err := json.Marshal(mine)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(ctx, "t", 0, store.Commit{Plan: mine}); err != nil {
			t.Fatal(err)
		}
		rewrite := func(p *plan.Plan) {
			p.CompactedTokens = 9
			p.Drops[0].Span.MessageIDs[0] = "z"
			r := &p.Summarizations[0]
			r.Span.MessageIDs[0], r.Stand[0].Text, r.State.Tasks[0].Text = "z", "z", "z"
			r.Summary.ToolOutcomes[0].KeyFields["k"] = "z"
			p.Memory.Entries[0] = "z"
			p.Add(plan.Removal{})
		}
		rewrite(mine)
		for range 2 {
			for _, read := range []func() (*plan.Plan, error){
				func() (*plan.Plan, error) { p, _, err := s.Current(ctx, "t"); return p, err },
				func() (*plan.Plan, error) { return s.Plan(ctx, "t", 1) },
			} {
				p, err := read()
				if err != nil {
					t.Fatal(err)
				}
				if got, err := json.Marshal(p); err != nil || string(got) != string(want) {
					t.Errorf("the plan is\n%s\nwant\n%s\n%v", got, want, err)
				}
				rewrite(p)
			}
		}
	})
	t.Run("every plan is kept, the newest is current", func(t *testing.T) { // A14
		s := open(t)
		for n := range 3 {
			if version, err := s.Commit(ctx, "t", n, store.Commit{Plan: made(n + 1)}); err != nil || version != n+1 {
				t.Fatalf("%d, %v", version, err)
			}
		}
		for n := range 3 {
			if p, err := s.Plan(ctx, "t", n+1); err != nil || p.CompactedTokens != n+1 || len(p.Drops) != 1 {
				t.Errorf("version %d: %+v, %v", n+1, p, err)
			}
		}
		if p, version, err := s.Current(ctx, "t"); err != nil || version != 3 || p.CompactedTokens != 3 {
			t.Errorf("%+v, %d, %v", p, version, err)
		}
		if p, _, _ := s.Current(ctx, "other"); p != nil {
			t.Error("threads are not kept apart")
		}
	})
	t.Run("of many commits on one version one wins", func(t *testing.T) { // A14
		s := open(t)
		won := race(8, func(n int) error {
			_, err := s.Commit(ctx, "t", 0, store.Commit{Plan: made(n)})
			return err
		})
		if _, version, _ := s.Current(ctx, "t"); won != 1 || version != 1 {
			t.Errorf("%d commits won, version %d", won, version)
		}
		var conflict *store.ConflictError
		if _, err := s.Commit(ctx, "t", 0, store.Commit{Plan: made(9)}); !errors.As(err, &conflict) || conflict.Want != 0 || conflict.Have != 1 {
			t.Errorf("%v", err)
		}
	})
}

// TestCommit proves that a plan, its events, its documents and the marks of the
// messages are written together or not at all.
func TestCommit(t *testing.T, open func(testing.TB) store.Tenant) {
	ctx := t.Context()
	// covering hides the messages at the given positions of the thread.
	covering := func(th *thread.Thread, positions ...int) *plan.Plan {
		p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: th.ID(), ThreadVersion: th.Len()}
		for _, i := range positions {
			p.Clearings = append(p.Clearings, plan.Clearing{Span: th.Range(i, i+1), Origin: plan.Origin{Strategy: "clear", Reason: "for a test"}})
		}
		return p
	}
	begin := func(t *testing.T, s store.Tenant) *thread.Thread {
		var list []thread.Message
		for n := range 6 {
			list = append(list, say(thread.User, fmt.Sprint("message ", n)))
		}
		th, err := s.Log.Append(ctx, "t", 0, list)
		if err != nil {
			t.Fatal(err)
		}
		return th
	}
	t.Run("everything in one step", func(t *testing.T) { // B8, B11, D8
		s := open(t)
		th := begin(t, s)
		if _, err := s.Documents.Put(ctx, store.Document{Kind: "running", ID: "t", Body: []byte(`{"by":"me"}`)}); err != nil {
			t.Fatal(err)
		}
		version, err := s.Plans.Commit(ctx, "t", 0, store.Commit{
			Plan:   covering(th, 0, 1),
			Events: []event.Event{{Type: event.Cleared}, {Type: event.Completed, TokensBefore: 9, TokensAfter: 4, Details: map[string]any{"round": 1}}},
			Documents: []store.Document{
				{Kind: "running", ID: "t", Version: 1},
				{Kind: "last", ID: "t", Body: []byte(`"m1"`)},
			},
		})
		if err != nil || version != 1 {
			t.Fatalf("%d, %v", version, err)
		}
		marks, err := s.Plans.Compacted(ctx, "t")
		if err != nil || len(marks) != 2 || marks[th.At(0).ID] != 1 || marks[th.At(1).ID] != 1 {
			t.Errorf("marks %v, %v", marks, err)
		}
		events, err := s.Events.Events(ctx, "t", 0, 0)
		if err != nil || len(events) != 2 || events[1].ThreadID != "t" || events[1].TokensBefore != 9 || events[1].Details["round"] != 1.0 {
			t.Errorf("events %+v, %v", events, err)
		}
		if _, err := s.Documents.Document(ctx, "running", "t"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the running flag is not cleared: %v", err)
		}
		if d, err := s.Documents.Document(ctx, "last", "t"); err != nil || string(d.Body) != `"m1"` {
			t.Errorf("%s, %v", d.Body, err)
		}
		if info, err := s.Catalog.Thread(ctx, "t"); err != nil || info.Messages != 6 || info.Plans != 1 || info.Events != 2 {
			t.Errorf("%+v, %v", info, err)
		}
	})
	t.Run("a conflict writes nothing", func(t *testing.T) { // B11, D8
		s := open(t)
		th := begin(t, s)
		whole := func(documentVersion int) store.Commit {
			return store.Commit{
				Plan: covering(th, 2), Events: []event.Event{{Type: event.Completed}},
				Documents: []store.Document{{Kind: "new", ID: "t", Body: []byte(`1`)}, {Kind: "state", ID: "t", Version: documentVersion, Body: []byte(`2`)}},
			}
		}
		var conflict *store.ConflictError
		if _, err := s.Plans.Commit(ctx, "t", 0, whole(7)); !errors.As(err, &conflict) || conflict.Document != "state/t" || conflict.Want != 7 || conflict.Have != 0 {
			t.Errorf("document: %v", err)
		}
		if _, err := s.Plans.Commit(ctx, "t", 3, whole(0)); !errors.As(err, &conflict) || conflict.ThreadID != "t" || conflict.Want != 3 || conflict.Have != 0 {
			t.Errorf("plan: %v", err)
		}
		if _, err := s.Plans.Commit(ctx, "t", 0, store.Commit{Events: []event.Event{{Type: event.Completed}}}); err == nil {
			t.Error("a commit without a plan was taken")
		}
		twice := whole(0)
		twice.Documents = append(twice.Documents, twice.Documents[0])
		if _, err := s.Plans.Commit(ctx, "t", 0, twice); err == nil {
			t.Error("a document was put twice in one commit")
		}
		marks, _ := s.Plans.Compacted(ctx, "t")
		events, _ := s.Events.Events(ctx, "t", 0, 0)
		documents, _ := s.Documents.Documents(ctx, "new", "", 0)
		if p, _, _ := s.Plans.Current(ctx, "t"); p != nil || len(marks)+len(events)+len(documents) != 0 {
			t.Errorf("plan %v, marks %v, events %v, documents %v", p, marks, events, documents)
		}
	})
	t.Run("marks follow the plan", func(t *testing.T) { // B11
		s := open(t)
		th := begin(t, s)
		for n, step := range []struct {
			hide []int
			want map[thread.ID]int
		}{
			{[]int{0, 1}, map[thread.ID]int{th.At(0).ID: 1, th.At(1).ID: 1}},
			{[]int{1, 2}, map[thread.ID]int{th.At(1).ID: 1, th.At(2).ID: 2}},
			{nil, map[thread.ID]int{}},
			{[]int{0, 1}, map[thread.ID]int{th.At(0).ID: 4, th.At(1).ID: 4}},
		} {
			p := covering(th, step.hide...)
			p.Drops = []plan.Removal{{Span: thread.Span{MessageIDs: []thread.ID{"not in the log"}}}}
			if _, err := s.Plans.Commit(ctx, "t", n, store.Commit{Plan: p}); err != nil {
				t.Fatal(err)
			}
			if marks, err := s.Plans.Compacted(ctx, "t"); err != nil || !maps.Equal(marks, step.want) {
				t.Errorf("plan %d: marks %v, %v, want %v", n+1, marks, err, step.want)
			}
		}
	})
}
