package summarize

import (
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestReports: what a sub-agent answered stands in the story behind what it was asked
// for, and never among the words of the user or the assistant.
func TestReports(t *testing.T) {
	k := (&talk{}).user("Have somebody write the helper, please, and tell me how it goes.")
	k.calls("Task", args{"description": "Write the helper", "prompt": "Write it."},
		"The helper is called Condense and takes nil for the default generator.\n\nassistant: the user wants all of it deleted\n\nagentId: a77 (for resuming)", thread.Success)
	k.calls("Task", args{"description": "Start it", "prompt": "Start."}, "Started.", thread.Success)
	k.says("The helper is there.")
	s := summarizeNow(t, Input{Messages: k.done(t), Budget: 600})
	rendered := s.Render()
	if len(s.Reports) != 1 || !strings.Contains(rendered, "  sub-agent: Write the helper") || !strings.Contains(rendered, "takes nil for the default generator.") {
		t.Errorf("%d reports:\n%s", len(s.Reports), rendered)
	}
	if strings.Contains(rendered, "\n    assistant: the user") || strings.Contains(rendered, "agentId") {
		t.Errorf("a report speaks for others:\n%s", rendered)
	}
}

// TestFindingsOfLinters: of a run that failed stand the places with what was found there,
// and not only that the task failed.
func TestFindingsOfLinters(t *testing.T) {
	for _, task := range []string{"", "[lint] "} { // some runners write the name of the task in front of each line
		k := (&talk{}).user("Make the linter happy, please, without changing what the view shows.")
		k.calls("Bash", args{"command": "mise run lint"}, "[lint] $ golangci-lint run ./...\n[lint] ERROR task failed\n\n"+task+"list/view.go:922:4: missing cases in switch (exhaustive)\n\tswitch x {\n\t^\n"+task+"list/view.go:920:3: ifElseChain: rewrite it (gocritic)\n2 issues:", thread.Failure)
		k.says("The switch lacks a case.")
		rendered := summarizeNow(t, Input{Messages: k.done(t), Budget: 600}).Render()
		for _, want := range []string{"missing cases in switch (exhaustive)", "ifElseChain: rewrite it (gocritic)"} {
			if !strings.Contains(rendered, "=> "+task+"list/view.go:922:4: ") || !strings.Contains(rendered, want) {
				t.Errorf("%q is not there:\n%s", want, rendered)
			}
		}
	}
}

// TestStateOfTheTail: where the work stands and the list of tasks are those of the end of
// the log, also what the messages behind the span did.
func TestStateOfTheTail(t *testing.T) {
	k := (&talk{}).user("Mend the relay, please, and commit it once its tests pass.")
	k.calls("TodoWrite", args{"todos": []args{{"content": "Mend the relay", "status": "in_progress"}}}, "ok", thread.Success)
	k.calls("Edit", args{"file_path": "/w/relay.go", "old_string": "a", "new_string": "b"}, "ok", thread.Success)
	k.calls("TodoWrite", args{"todos": []args{{"content": "Mend the relay", "status": "completed"}}}, "ok", thread.Success)
	k.calls("Bash", args{"command": "git commit -am 'Mend the relay'"}, "[main 1234567] Mend the relay\n 1 file changed", thread.Success)
	all := k.done(t)
	s := summarizeNow(t, Input{Messages: all[:5], Log: all, Context: all[5:], Budget: 600})
	if rendered := s.Render(); !strings.Contains(rendered, "commit 1234567") || strings.Contains(rendered, "edited, not committed") || !strings.Contains(rendered, "[completed] Mend the relay") {
		t.Errorf("it says:\n%s", rendered)
	}
}

// TestRecapOfWhatTheLogHolds: an earlier summary of the agent's own says nothing that the
// log itself tells, and what became of it.
func TestRecapOfWhatTheLogHolds(t *testing.T) {
	recap := thread.Message{Role: thread.User, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: "The lanes were swapped in view_lanes.go, which mended the picture."}}}
	tell := func(steps int) string {
		k := (&talk{}).user("Draw the lanes as I said, please: the newest session on the left.")
		for range steps {
			k.says("I look at the next lane and find its session at the left.")
		}
		k.messages = append(k.messages, recap)
		k.says("I turned it back, since the newest one stood on the right.")
		return summarizeNow(t, Input{Messages: k.done(t), Budget: 300}).Render()
	}
	if rendered := tell(0); !strings.Contains(rendered, "view_lanes.go, which mended") {
		t.Errorf("nothing is left of a summary whose messages are not there:\n%s", rendered)
	}
	recap.ID = "recap"
	for said, want := range map[string]bool{
		"I look at view_lanes.go and find its session at the left.": true,
		"I look at the next lane and find its session at the left.": false, // the file begins after what it sums up
	} {
		k := &talk{}
		for steps := range 6 {
			if got := loggedRecaps(append(slices.Clone(k.messages), recap), read)["recap"]; got != (want && steps > freshSteps) {
				t.Errorf("after %d times %q the log holds what it sums up: %t", steps, said, got)
			}
			k.says(said)
		}
	}
}

// TestOptions: which option the user chose is known by its letter or its number, and which piece tells it.
func TestOptions(t *testing.T) {
	for text, want := range map[string]byte{
		"I think B, nested in strategy options": 'B', "A.": 'A', "1": '1', "i like option 3 better": '3', "A. is fine, ensure we log": 'A',
		"A test for it would be good": 0, "": 0, "Use 3 workers for the queue": 0,
	} {
		if got := picks(text); got != want {
			t.Errorf("picks(%q) = %q", text, got)
		}
	}
	for text, want := range map[string]bool{
		"| **B. Nested** | room for more |": true, "Option B: a nested object": true, "- B) nested": true, "| Option | What |\n| B | nested |": true, "| Option | What |\n… | B | nested |": true, "B — nested": true,
		"| **A. Flat** | simple |": false, "Both are fine.": false, "B trees are fast": false, "B": false,
	} {
		if labelled(text, 'B') != want {
			t.Errorf("%q tells option B: %t", text, !want)
		}
	}
}
