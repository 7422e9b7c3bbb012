package proxy

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestForkKeepsWhatWasRewritten: in a shorter log the plan of the parent still says in which
// messages thinking is no longer valid.
func TestForkKeepsWhatWasRewritten(t *testing.T) {
	for _, c := range []struct{ arrived, edited, want int }{
		{0, 0, 6}, // the compaction was at 10 messages
		{3, 0, 6}, // at 7
		{6, 0, 4}, // at 4
		{6, 5, 5},
		{6, 8, 6},
	} {
		kept := &store.Memory{}
		var messages []thread.Message
		for range 5 {
			messages = append(messages,
				thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "More."}}},
				thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "Done."}}})
		}
		parent, err := kept.Append(t.Context(), "parent", 0, messages)
		if err != nil {
			t.Fatal(err)
		}
		p := &plan.Plan{
			Schema: plan.SchemaVersion, ThreadID: "parent", ThreadVersion: 10, Arrived: c.arrived, Edited: c.edited,
			Drops: []plan.Removal{{Span: parent.Range(0, 2)}},
		}
		if _, err := kept.Commit(t.Context(), "parent", 0, store.Commit{Plan: p}); err != nil {
			t.Fatal(err)
		}
		if err := (&conversations{log: kept, plans: kept}).forkLog(t.Context(), "fork", parent, 6); err != nil {
			t.Fatal(err)
		}
		inherited, _, err := kept.Current(t.Context(), "fork")
		if err != nil || inherited.Rewritten() != c.want {
			t.Errorf("arrived %d, edited %d: %d messages of 6, want %d, %v", c.arrived, c.edited, inherited.Rewritten(), c.want, err)
		}
	}
}
