package summarize_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestTaskBehindTheSpan: the current task is named only while no newer one
// stands in the prompt itself; an old task beside a new one is done again.
func TestTaskBehindTheSpan(t *testing.T) {
	ask := func(text string) thread.Message {
		return thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}
	}
	old := ask("Please move the retry code of the carrier client into its own package.")
	tests := []struct {
		context []thread.Message
		want    string
	}{
		{nil, old.Text()},
		{[]thread.Message{ask("thanks")}, old.Text()},
		{[]thread.Message{ask("Now write the changelog entry for version 0.9.3 and date it.")}, ""},
	}
	for _, tt := range tests {
		s, err := (&summarize.Extractive{}).Summarize(t.Context(), summarize.Input{Messages: []thread.Message{old}, Context: tt.context, Budget: 500})
		if err != nil {
			t.Fatal(err)
		}
		if s.CurrentTask != tt.want {
			t.Errorf("with %d messages behind: task %q, want %q", len(tt.context), s.CurrentTask, tt.want)
		}
		if len(s.Requests) != 1 || s.Requests[0].Text != old.Text() {
			t.Errorf("the request itself is lost: %+v", s.Requests)
		}
	}
}
