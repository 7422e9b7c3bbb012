package summarize

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// belowItem returns the lines of the rendered summary below the item whose head holds a
// text; nothing where there is no such item.
func belowItem(rendered, head string) string {
	var b strings.Builder
	in := false
	for line := range strings.Lines(rendered) {
		if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "## ") {
			in = strings.Contains(line, head)
			continue
		}
		if in {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestLinesOfChangedFiles: what a file no longer holds is not told, what it
// holds stands with the newest reading, and a file that is gone says nothing.
func TestLinesOfChangedFiles(t *testing.T) {
	k := (&talk{}).user("Make the relay faster, please, and keep its tests green.")
	k.calls("Read", args{"file_path": "/w/relay.go"}, "1\tconst relayPort = 7411\n2\tconst relayHost = \"relay-a.local\"\n3\tfunc startRelay() error {", thread.Success)
	k.calls("Read", args{"file_path": "/w/old_relay.go"}, "1\tconst legacyPort = 5511\n2\tfunc legacyRelay() {", thread.Success)
	k.calls("Edit", args{"file_path": "/w/relay.go", "old_string": "const relayPort = 7411\nconst relayHost = \"relay-a.local\"", "new_string": "const relayPort = 9322\nconst relayHost = \"relay-a.local\""}, "ok", thread.Success)
	k.calls("Edit", args{"file_path": "/w/relay.go", "old_string": "func startRelay() error {", "new_string": "func bootRelay() error {"}, "String to replace not found in file.", thread.Failure)
	k.calls("Bash", args{"command": "rm /w/old_relay.go"}, "", thread.Success)
	k.says("The port is 9322 now.")
	rendered := summarizeNow(t, Input{Messages: k.done(t), Budget: 600}).Render()

	if strings.Contains(strings.ReplaceAll(rendered, "const relayPort = 7411 → ", ""), "7411") {
		t.Errorf("a line that is gone is told:\n%s", rendered)
	}
	if got := belowItem(rendered, ") Edit /w/relay.go"); !strings.Contains(got, "relayPort = 9322") {
		t.Errorf("the edit says %q", got)
	}
	if got := belowItem(rendered, "failed Edit /w/relay.go"); !strings.Contains(got, "bootRelay") {
		t.Errorf("the edit that failed says %q", got)
	}
	if strings.Contains(rendered, "legacyPort") || !strings.Contains(rendered, "/w/old_relay.go: read, deleted") {
		t.Errorf("lines of the deleted file are told, or that it is gone is not:\n%s", rendered)
	}
	if n := strings.Count(rendered, "relay-a.local"); n != 1 { // the edit that left it where it was says nothing of it
		t.Errorf("the line that stayed is told %d times", n)
	}
}

// TestReadAgain: a newer reading takes the place of an older one, also of a part;
// lines that were not read again stay with theirs.
func TestReadAgain(t *testing.T) {
	k := (&talk{}).user("Make the relay faster, please, and keep its tests green.")
	k.calls("Read", args{"file_path": "/w/relay.go"}, "1\tfirst_marker(11)\n2\tsecond_marker(22)\n3\tthird_marker(33)\n4\tfourth_marker(44)", thread.Success)
	k.calls("Read", args{"file_path": "/w/relay.go", "offset": 1, "limit": 3}, "1\tfirst_marker(11)\n2\tnewer_marker(7)\n3\tthird_marker(33)", thread.Success)
	k.says("I see.")
	rendered := summarizeNow(t, Input{Messages: k.done(t), Budget: 600}).Render()
	if strings.Contains(rendered, "second_marker") {
		t.Errorf("a line that is gone is told:\n%s", rendered)
	}
	for _, line := range []string{"first_marker", "newer_marker", "third_marker", "fourth_marker"} {
		if strings.Count(rendered, line) != 1 {
			t.Errorf("%s is told %d times, want once\n%s", line, strings.Count(rendered, line), rendered)
		}
	}
}

// TestRunAgain: of a command that ran again only the last output is told; what came
// after the span counts.
func TestRunAgain(t *testing.T) {
	k := (&talk{}).user("Make the relay faster, please, and keep its tests green.")
	k.calls("Bash", args{"command": "git status --short"}, " M src/relay_pool.go\n M src/relay_dial.go\n?? src/relay_tmp.go\n?? src/relay_out.go", thread.Success)
	k.calls("Bash", args{"command": "git status --short"}, " M src/relay_pool.go\n M src/relay_dial.go\n?? src/relay_out.go\n?? src/relay_new.go", thread.Success)
	k.says("I see.")
	in := Input{Messages: k.done(t), Budget: 600}
	if rendered := summarizeNow(t, in).Render(); strings.Contains(rendered, "relay_tmp") || !strings.Contains(rendered, "relay_new") {
		t.Errorf("an output that is out of date is told, or the last is not:\n%s", rendered)
	}
	later := (&talk{n: 10}).calls("Bash", args{"command": "git status --short"}, "nothing_to_commit", thread.Success)
	in.Context = later.done(t)
	if rendered := summarizeNow(t, in).Render(); strings.Contains(rendered, "relay_new") {
		t.Errorf("an output that is out of date since the span is told:\n%s", rendered)
	}
}

// TestCutCallIsNoOther: two commands that differ where they were cut are not the same.
func TestCutCallIsNoOther(t *testing.T) {
	script := "python3 - <<'E'\nif relay:\n" + strings.Repeat(strings.Repeat(" ", 150)+"dial()\n", 3)
	k := (&talk{}).user("Make the relay faster, please, and keep its tests green.")
	k.calls("Bash", args{"command": script + "first()\nE"}, "first_marker(11)\nsecond_marker(22)\nNameError: name 'first' is not defined", thread.Failure)
	k.calls("Bash", args{"command": script + "second()\nE"}, "third_marker(33)", thread.Success)
	rendered := summarizeNow(t, Input{Messages: k.says("I see.").done(t), Budget: 600}).Render()
	if strings.Contains(rendered, "succeeded later") || !strings.Contains(rendered, "second_marker") {
		t.Errorf("the second is taken for the first:\n%s", rendered)
	}

	k = (&talk{}).user("Book it.")
	long := args{"a": strings.Repeat("a", 85), "b": strings.Repeat("b", 85), "c": strings.Repeat("c", 85), "d": strings.Repeat("d", 85), "e": strings.Repeat("e", 85), "room": strings.Repeat("12", 30)}
	k.calls("mcp__hotel__book", long, "no such room", thread.Failure)
	long["room"] = strings.Repeat("13", 30)
	k.calls("mcp__hotel__book", long, "booked", thread.Success)
	if failed := texts(summarizeNow(t, Input{Messages: k.says("I see.").done(t)}).FailedAttempts); len(failed) != 1 || strings.Contains(failed[0], "succeeded later") {
		t.Errorf("%q", failed)
	}
}

// TestFailedThenSettled: a failed attempt says when the same call succeeded later.
func TestFailedThenSettled(t *testing.T) {
	k := (&talk{}).user("Make the relay faster, please, and keep its tests green.")
	k.calls("Bash", args{"command": "go test ./relay 2>&1"}, "--- FAIL: TestRelay (0.01s)\nFAIL", thread.Failure)
	k.says("The timeout is too short.")
	k.calls("Bash", args{"command": "go vet ./relay"}, "relay.go:3: undefined: dialRelay", thread.Failure)
	k.says("A name is missing.")
	k.calls("Bash", args{"command": "go test ./relay 2>&1 | tail -5"}, "ok  \trelay\t0.02s", thread.Success)
	failed := texts(summarizeNow(t, Input{Messages: k.done(t), Budget: 600}).FailedAttempts)
	if len(failed) != 2 || !strings.HasSuffix(failed[0], "it succeeded later, in turn 1") || strings.Contains(failed[1], "succeeded") {
		t.Errorf("failed attempts %q", failed)
	}
}

// TestShown: a request that the prompt shows and that is newer than the span's is
// the task, also where it stands among the messages of the span; what the prompt
// shows is not said again.
func TestShown(t *testing.T) {
	k := (&talk{}).user("Please move the retry code of the carrier client into its own package.")
	k.calls("Bash", args{"command": "ls"}, "src/carrier_retry.go\nsrc/carrier_pool.go", thread.Success)
	k.user("Now write the changelog entry for version 0.9.3 and mention carrier_pool.go in it.")
	k.calls("Bash", args{"command": "git log"}, "1a2b3c4d the last commit", thread.Success)
	all := k.done(t)
	in := Input{Messages: append(all[:3:3], all[4:]...), Budget: 400}
	if s := summarizeNow(t, in); s.CurrentTask == "" {
		t.Error("no task although none is shown")
	}
	in.Shown = all[3:4]
	s := summarizeNow(t, in)
	if s.CurrentTask != "" {
		t.Errorf("the task is said to be %q, a newer one is shown", s.CurrentTask)
	}
}

// TestSaysNothing: what tells a reader next to nothing is not told while there is
// something else: attempts to read what is not there.
func TestSaysNothing(t *testing.T) {
	k := (&talk{}).user("Read the logging code.").says("Let me look at it.")
	k.calls("Read", args{"file_path": "/r/logging.go"}, "File does not exist.", thread.Failure).says("Let me search for it.")
	k.calls("Grep", args{"pattern": "logging"}, "/r/logger.go", thread.Success).says("It is in logger.go.")
	if s := summarizeNow(t, Input{Messages: k.done(t)}); len(s.FailedAttempts) > 0 {
		t.Errorf("told as a failure: %q", texts(s.FailedAttempts))
	}
}

// TestEditThatFailed: an edit that a file did not take is told with the one that it took.
func TestEditThatFailed(t *testing.T) {
	k := (&talk{}).user("Export the runner.")
	k.calls("Edit", args{"file_path": "/r/index.ts", "old_string": "export a", "new_string": "export a\nexport runner"}, "Could not find the exact text in index.ts.", thread.Failure)
	k.calls("Read", args{"file_path": "/r/index.ts"}, "export b\nexport a", thread.Success)
	k.calls("Edit", args{"file_path": "/r/other.ts", "old_string": "let n = 1", "new_string": "let n = 2"}, "ok", thread.Success)
	k.calls("Edit", args{"file_path": "/r/index.ts", "old_string": "export b", "new_string": "export { runner } from './runner'"}, "ok", thread.Success).says("Done.")
	s := summarizeNow(t, Input{Messages: k.done(t)})
	if len(s.FailedAttempts) != 1 || !strings.Contains(s.FailedAttempts[0].Text, "find the exact text") || !strings.HasSuffix(s.FailedAttempts[0].Text, "| edited next: /r/index.ts") {
		t.Errorf("failures: %q", texts(s.FailedAttempts))
	}
}

// TestReadThatFailed: the words of a tool that could not read a file are not told as its content.
func TestReadThatFailed(t *testing.T) {
	const hint = "File does not exist. Did you mean /x/relay_b.go?"
	for _, flag := range []thread.Outcome{thread.Failure, thread.Success} {
		k := (&talk{}).user("Read the relay, please.").says("Let me look at it.")
		k.calls("Read", args{"file_path": "/x/relay_a.go"}, hint, flag).says("It is another one.")
		k.calls("Read", args{"file_path": "/x/relay_b.go"}, "1\tfunc bootRelay() error {", thread.Success)
		k.calls("Read", args{"file_path": "/x/relay_a.go"}, "1\tfunc startRelay() error {", thread.Success).says("Now it is there.")
		rendered := summarizeNow(t, Input{Messages: k.done(t), Budget: 900}).Render()
		if got := belowItem(rendered, "failed Read /x/relay_a.go"); !strings.Contains(got, hint) {
			t.Errorf("%s: what the tool said is told under another name:\n%s", flag, rendered)
		}
	}
}
