package summarize

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

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

// TestLoggedRecap: lines of the agent's own summary are told only where the log does not hold
// what they sum up.
func TestLoggedRecap(t *testing.T) {
	recap := func(k *talk) *talk {
		k.add(thread.Message{Role: thread.User, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: "This session is being continued from a previous conversation.\nAnalysis:\nThe limit was raised.\n\nSummary:\nThe limit commit_scan_limit was set to 50."}}})
		return k
	}
	k := recap((&talk{}).user("Set the limit."))
	if s := summarizeNow(t, Input{Messages: k.says("Now on to the tests of it.").done(t)}); !strings.Contains(s.Render(), "commit_scan_limit was set") || strings.Contains(s.Render(), "raised") {
		t.Errorf("without its log: %s", s.Render())
	}
	k = (&talk{}).user("Set the limit.")
	for range freshSteps + 1 {
		k.calls("Edit", args{"file_path": "/r/a.go", "old_string": "commit_scan_limit = 10", "new_string": "commit_scan_limit = 50"}, "ok", thread.Success)
	}
	if s := summarizeNow(t, Input{Messages: recap(k).says("Now on to the tests of it.").done(t)}); strings.Contains(s.Render(), "earlier summary") {
		t.Errorf("with its log: %s", s.Render())
	}
}

// TestOwnSummaryComesBack: of a summary of ours that is in the conversation only what it tells is told again, without its
// headings and labels however often it comes back, with its gaps, and the user's words in it before others. F10, F3, G7
func TestOwnSummaryComesBack(t *testing.T) {
	told := "[Context Summary - Turns 1-3]\n[Summary v1.0]\n## What happened, by turn (in part)\n- turn 1\n  assistant: The limit commit_scan_limit is 50.\n  … Its test passes.\n" +
		"- turn 2\n  user: \"Never push to main.\"\n  assistant: " + strings.Repeat("Filler of the work goes on here. ", 40) + "\n"
	for round := range 3 {
		k := (&talk{}).user("Set the limit.")
		k.add(thread.Message{Role: thread.Assistant, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: told}}})
		k.user("Go on.").says("Now on to the tests of it.")
		told = summarizeNow(t, Input{Messages: k.done(t), Budget: 260 - 20*round}).Render()
		if strings.Count(told, "an earlier summary") != 1 || strings.Contains(told, "agent's earlier summary") || strings.Count(told, "What happened") != 1 || strings.Contains(told, "… …") {
			t.Errorf("round %d: %s", round, told)
		}
		if !strings.Contains(told, `user: "Never push to main."`) || strings.Contains(told, "50.\n    Its test") {
			t.Errorf("round %d: %s", round, told)
		}
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
