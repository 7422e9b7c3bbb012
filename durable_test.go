package palimpsest_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// TestDurableLoop: an agent that goes on in another process finds the same
// prompt, and what its compactions did is in the store: each with its round, its
// tokens, its summary and the messages that it took, written in one step with
// the plan. B8, B11, D8, A1, A14
func TestDurableLoop(t *testing.T) {
	for _, p := range []policy.Policy{policy.Auto{}, policy.Session{ContextLimit: 16_000}, policy.Workstream{ContextSize: 50_000}} {
		t.Run(p.Name(), func(t *testing.T) { durableLoop(t, p) })
	}
}

func durableLoop(t *testing.T, p policy.Policy) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "p.db")
	begin := func() (*sqlite.DB, *palimpsest.Compactor) {
		t.Helper()
		db, err := sqlite.Open(ctx, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := db.Tenant("acme")
		c, err := palimpsest.New(palimpsest.Config{Policy: p, Log: s.Log, Plans: s.Plans})
		if err != nil {
			t.Fatal(err)
		}
		return db, c
	}
	db, c := begin()
	th, step, _ := longLoop(t, c)
	before, err := th.PrepareStep(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	db, c = begin()
	defer db.Close()
	after, err := c.Session("ticket-4711").PrepareStep(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Prompt, after.Prompt, cmpopts.IgnoreUnexported(prompt.Prompt{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("after the restart the prompt is another (-before +after):\n%s", diff)
	}

	s := db.Tenant("acme")
	current, rounds, err := s.Plans.Current(ctx, "ticket-4711")
	if err != nil || rounds == 0 {
		t.Fatalf("%d rounds, %v", rounds, err)
	}
	events, err := s.Events.Events(ctx, "ticket-4711", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	completed := 0
	for _, e := range events {
		if e.Type != event.Completed {
			continue
		}
		completed++
		made, err := s.Plans.Plan(ctx, "ticket-4711", completed)
		if err != nil || e.Details["round"] != float64(completed) || e.TokensBefore == 0 || e.TokensAfter == 0 || e.Time.IsZero() || made.Empty() {
			t.Errorf("round %d: %+v, %v", completed, e, err)
		}
	}
	if completed != rounds {
		t.Errorf("%d compactions told, %d plans", completed, rounds)
	}
	marks, err := s.Plans.Compacted(ctx, "ticket-4711")
	if err != nil {
		t.Fatal(err)
	}
	actions := current.Actions()
	for id := range actions {
		if since := marks[id]; since < 1 || since > rounds {
			t.Errorf("message %s is covered and marked %d", id, since)
		}
	}
	if len(marks) != len(actions) {
		t.Errorf("%d marks, %d messages are covered", len(marks), len(actions))
	}

	// What was removed is found again: log and plan hold all of it. A22
	log, err := s.Log.Load(ctx, "ticket-4711")
	if err != nil {
		t.Fatal(err)
	}
	entries := recall.Removed(log, current)
	if len(entries) != len(actions) || len(recall.NewIndex(entries).Search(entries[0].Text, nil)) == 0 {
		t.Errorf("%d of %d removed messages can be searched", len(entries), len(actions))
	}
}
