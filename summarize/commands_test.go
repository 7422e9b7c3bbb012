package summarize

import (
	"strings"
	"testing"
)

// TestTypedCommands: the text that a command stands for is a request, but neither the
// task nor a rule of the user, who did not write it; and it takes little room.
func TestTypedCommands(t *testing.T) {
	review := "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>this branch</command-args>\n" +
		strings.Repeat("You must always look at each file. Never skip the tests.\n", 40)
	k := &talk{}
	k.user("Replace the queue by the new one, in all of the packages below store.").says("It is done.").user(review).says("All is well.").user("push it").says("Pushed.")
	s := summarizeNow(t, Input{Messages: k.done(t), Budget: 1200})
	if !strings.HasPrefix(s.CurrentTask, "Replace the queue") {
		t.Errorf("the task is %q", s.CurrentTask)
	}
	if len(s.Constraints) > 0 {
		t.Errorf("rules of the user: %q", texts(s.Constraints))
	}
	found := false
	for _, r := range s.Requests {
		if strings.HasPrefix(r.Text, "/review") {
			found = true
			if len(r.Text) > commandBytes+100 || !strings.Contains(r.Text, "this branch") {
				t.Errorf("%d bytes: %q", len(r.Text), r.Text)
			}
		}
	}
	if !found {
		t.Errorf("requests: %q", texts(s.Requests))
	}
}

// TestCommandsInTwoMessages: some clients keep a slash command and its text as two messages.
// Whether the command stands in the span or before it, its text is none of the user's words.
func TestCommandsInTwoMessages(t *testing.T) {
	log := new(talk).
		user("<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>pull/2</command-args>").
		user("# Review\n\nAlways check out the branch first.\n" + strings.Repeat("Read the change line by line.\n", 200)).
		says("The branch is checked out.").
		user("Never push to main.").
		says("I will not.").
		user("Thanks, what next?").done(t)
	for from := range 2 {
		text := summarizeNow(t, Input{Messages: log[from : len(log)-1], Log: log, Budget: 600}).Render()
		if rules, _, _ := strings.Cut(text, "## What happened"); strings.Contains(rules, "Always check out") || !strings.Contains(rules, "Never push to main.") {
			t.Errorf("from message %d: the text of the command counts as the user's wish:\n%s", from, text)
		}
		if n := strings.Count(text, "line by line"); n > 20 {
			t.Errorf("from message %d: the text of the command takes %d lines:\n%s", from, n, text)
		}
	}
}
