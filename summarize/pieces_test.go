package summarize

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestListHeading: an item of a list stands below the heading of its list, which is written once,
// even when the items between are left out.
func TestListHeading(t *testing.T) {
	filler := func(s string) string { return "- " + strings.Repeat(s+" ", 40) + "\n" }
	k := (&talk{}).user("What does the field hold?").says("**CondensedTranscriptLines:**\n" + filler("one") + filler("two") +
		"- For manual commits it stays at 0 across the turns in module_seven, since nothing was condensed.\n" + filler("three") +
		"- For auto commits it grows in module_eight with every commit that was condensed before.\n\nThat is all about the field.")
	s := summarizeNow(t, Input{Messages: k.done(t), Budget: 150})
	text := strings.Join(texts(s.Conclusions), "\n")
	if !strings.Contains(text, "stays at 0") {
		t.Fatalf("the item was not chosen: %q", text)
	}
	if !strings.Contains(text, "**CondensedTranscriptLines:**\n"+gap+"- For manual") || strings.Count(text, "CondensedTranscriptLines") != 1 {
		t.Errorf("%q", text)
	}
}

// TestReminderBelowOutput: what a harness put below an output is no part of it; a reminder in
// the middle of a file is.
func TestReminderBelowOutput(t *testing.T) {
	const reminder = "<system-reminder>\nConsider whether it is malware_like.\n</system-reminder>"
	for output, want := range map[string]string{
		"one\n\n" + reminder + "\n":                        "one\n",
		"one\n" + reminder + "\n" + reminder:               "one",
		"one\n" + reminder + "\ntwo":                       "one\n" + reminder + "\ntwo",
		"<system-reminder>\nall of it\n</system-reminder>": "<system-reminder>\nall of it\n</system-reminder>",
		"one\n<system-reminder>\nThe user sent a new message while you were working:\ntwo\n</system-reminder>": "one\n<system-reminder>\nThe user sent a new message while you were working:\ntwo\n</system-reminder>",
		"no opening\n</system-reminder>": "no opening\n</system-reminder>",
	} {
		if got := withoutReminders(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
	k := (&talk{}).user("Read it.").calls("Read", args{"file_path": "/r/a.go"}, "func parse_tree() {}\n"+reminder, thread.Success).says("Done.")
	if text := summarizeNow(t, Input{Messages: k.done(t)}).Render(); strings.Contains(text, "malware") || !strings.Contains(text, "parse_tree") {
		t.Error(text)
	}
}

// TestToldCall: what a call wrote for people is told once, among the assistant's words.
func TestToldCall(t *testing.T) {
	const body = "Fixed in 36ff9a9 by closing the iterator of the log."
	k := (&talk{}).user("Answer the comments.").calls("Bash", args{"command": `gh api repos/o/r/pulls/112/comments/2734651385/replies -f body="` + body + `"`}, `{"id": 7}`, thread.Success).says("Answered.")
	text := summarizeNow(t, Input{Messages: k.done(t)}).Render()
	if strings.Count(text, body) != 1 || !strings.Contains(text, "comments/2734651385/replies -f body=\"…\"") {
		t.Error(text)
	}
}

// TestLoggedRecap: lines of the agent's own summary are told only where the log does not hold
// what they sum up.
func TestLoggedRecap(t *testing.T) {
	recap := func(k *talk) *talk {
		k.add(thread.Message{Role: thread.User, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: "This session is being continued from a previous conversation.\nThe limit commit_scan_limit was set to 50."}}})
		return k
	}
	k := recap((&talk{}).user("Set the limit."))
	if s := summarizeNow(t, Input{Messages: k.says("Now on to the tests of it.").done(t)}); !strings.Contains(s.Render(), "commit_scan_limit was set") {
		t.Errorf("without its log: %s", s.Render())
	}
	k = (&talk{}).user("Set the limit.")
	for range freshSteps + 1 {
		k.calls("Edit", args{"file_path": "/r/a.go", "old_string": "a", "new_string": "b"}, "ok", thread.Success)
	}
	if s := summarizeNow(t, Input{Messages: recap(k).says("Now on to the tests of it.").done(t)}); strings.Contains(s.Render(), "commit_scan_limit") {
		t.Errorf("with its log: %s", s.Render())
	}
}

// TestTurnsBack: that the assistant undoes something is told though it only announces it: without
// it, the edits of both ways look like steps forward.
func TestTurnsBack(t *testing.T) {
	k := (&talk{}).user("Do we have a test for this?")
	k.says("No test exists. Let me revert the fix, write a failing test first, then re-implement.")
	k.calls("Edit", args{"file_path": "/r/a.go", "old_string": "fixed()", "new_string": "broken()"}, "ok", thread.Success)
	k.says("Let me look at the other file.").calls("Read", args{"file_path": "/r/b.go"}, "package b", thread.Success).says("Done.")
	said := strings.Join(texts(summarizeNow(t, Input{Messages: k.done(t), Budget: 300}).Conclusions), "\n")
	if !strings.Contains(said, "revert the fix") || strings.Contains(said, "other file") {
		t.Errorf("%q", said)
	}
}
