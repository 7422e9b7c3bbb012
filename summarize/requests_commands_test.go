package summarize

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTypedCommands: the text that a command stands for is a request, but not the task, since
// the user did not write it. It takes little room, and its rules never that of the user's own.
func TestTypedCommands(t *testing.T) {
	review := "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>this branch</command-args>\n" +
		strings.Repeat("You must always look at each file. Never skip the tests.\n", 40)
	k := &talk{}
	k.user("Replace the queue by the new one, in all of the packages below store. Never push to main.").says("It is done.").user(review).says("All is well.").user("push it").says("Pushed.")
	s := summarizeNow(t, Input{Messages: k.done(t), Budget: 1200})
	if !strings.HasPrefix(s.CurrentTask, "Replace the queue") {
		t.Errorf("the task is %q", s.CurrentTask)
	}
	if rules := texts(s.Standing()); !slices.Contains(rules, "Never push to main.") || slices.ContainsFunc(rules, func(r string) bool { return strings.Contains(r, "each file") }) {
		t.Errorf("rules: %q", rules)
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
// Whether the command stands in the span or before it, its text takes little room, and the
// user's own rules go first.
func TestCommandsInTwoMessages(t *testing.T) {
	log := new(talk).
		user("Never push to main.").
		says("I will not.").
		user("<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>pull/2</command-args>").
		user("# Review\n\n" + manyRules() + strings.Repeat("Read the change line by line.\n", 200)).
		says("The branch is checked out.").
		user("Thanks, what next?").done(t)
	for _, from := range []int{0, 3} {
		s := summarizeNow(t, Input{Messages: log[from : len(log)-1], Log: log, Budget: 320})
		if rules := texts(s.Standing()); from == 0 && !slices.Contains(rules, "Never push to main.") || slices.ContainsFunc(rules, func(r string) bool { return strings.Contains(r, "finding") }) {
			t.Errorf("from message %d: the rules of the command take the place of the user's: %q", from, rules)
		}
		if text := s.Render(); strings.Count(text, "line by line") > 10 {
			t.Errorf("from message %d: the text of the command takes the room:\n%s", from, text)
		}
	}
}

// manyRules are twenty rules, a line each.
func manyRules() string {
	var b strings.Builder
	for n := range 20 {
		fmt.Fprintf(&b, "You must always write finding %d into its own file below todos.\n", n)
	}
	return b.String()
}
