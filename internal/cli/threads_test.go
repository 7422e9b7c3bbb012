package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// onlyID is that of the only session of sessionOnMachine, and of its conversation.
const onlyID = "91bfefb2-9533-4bcc-8bfc-f00dd138f269"

// sessionOnMachine is the path of the only session, of Claude Code, on a machine without a store. The folder is its home.
func sessionOnMachine(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("CODEX_HOME", "")
	source, _ := filepath.Abs("../../testdata/sessions/fix-retry.claude-code.jsonl")
	t.Chdir(home)
	session, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, ".claude", "projects", "-src", onlyID+".jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, session, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestThreadNames: wherever a command takes a THREAD it is an id, the only one that begins so, or the number of its
// session in the list last shown; what names no conversation is an error that says where they are listed.
func TestThreadNames(t *testing.T) {
	file := sessionOnMachine(t)
	must := func(args ...string) string {
		t.Helper()
		status, out, said := run(t, args...)
		if status != exitDone {
			t.Fatalf("%v: exit status %d: %s", args, status, said)
		}
		return out
	}
	must("sessions")
	must("compact", file, "--budget", "16000", "--store", "kept.db", "-o", os.DevNull)
	hits := must("recall", "retry", "--store", "kept.db")
	message := strings.Fields(hits)[0]
	for _, tt := range []struct{ name, command string }{
		{"recall", "recall retry --thread THREAD"},
		{"list", "artifact list --thread THREAD"},
		{"get", "artifact get " + message + " --thread THREAD"},
		{"explain", "explain THREAD -o page.html"},
		{"plans", "threads THREAD"},
		{"pin", "pin THREAD " + message},
		{"free", "pin THREAD " + message + " --free"},
		{"undo", "undo THREAD --plan 0"},
		{"delete", "threads delete THREAD --yes"}, // the last: it is gone then
	} {
		call := func(thread string) (int, string, string) {
			return run(t, append(strings.Fields(strings.ReplaceAll(tt.command, "THREAD", thread)), "--store", "kept.db")...)
		}
		for _, unknown := range []string{"0cf3db51", "nosuch", "2", "91bfe"} {
			if tt.name == "explain" && unknown == "2" {
				continue // it takes sessions too, and says that there is no such number
			}
			status, out, said := call(unknown)
			if status != exitFailed || out != "" || !strings.Contains(said, "no stored conversation "+unknown) || !strings.Contains(said, "`palimpsest threads") {
				t.Errorf("%s of %s: exit status %d: %s%s", tt.name, unknown, status, out, said)
			}
		}
		for _, known := range []string{onlyID, onlyID[:8], "1"} {
			if tt.name == "delete" && known != "1" {
				continue
			}
			if status, _, said := call(known); status != exitDone || strings.Contains(said, "as it was stored") { // that is of a session
				t.Errorf("%s of %s: exit status %d: %s", tt.name, known, status, said)
			}
		}
	}
	if out := must("threads", "--store", "kept.db"); strings.Contains(out, onlyID) {
		t.Errorf("it was deleted by its number: %s", out)
	}
}

// TestUndoCountsNow: of the plan that an undo brings back it is told what it makes of the conversation now, which has
// grown since that plan was made.
func TestUndoCountsNow(t *testing.T) {
	file := sessionOnMachine(t)
	session, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(session), "\n")
	for _, part := range []int{3 * len(lines) / 4, len(lines)} {
		if err := os.WriteFile(file, []byte(strings.Join(lines[:part], "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, _, said := run(t, "compact", file, "--budget", "16000", "--store", "kept.db", "-o", os.DevNull); status != exitDone {
			t.Fatal(said)
		}
	}
	status, out, said := run(t, "undo", onlyID, "--store", "kept.db", "--json")
	var made undone
	if err := json.Unmarshal([]byte(out), &made); err != nil || status != exitDone {
		t.Fatal(err, out, said)
	}
	if made.Restored.Version != 1 || made.Restored.Tokens < 20_000 || made.Replaced.Tokens > 16_000 {
		t.Errorf("plan 1 was made of three quarters of the conversation: %s", out)
	}
}

// TestExplainTellsStored: of a session that was compacted and stored, the session is shown, and standard error names the
// command that shows the conversation. That one works.
func TestExplainTellsStored(t *testing.T) {
	file := sessionOnMachine(t)
	status, out, said := run(t, "explain", onlyID, "-o", "page.html")
	if status != exitDone || strings.Contains(said, "palimpsest explain") {
		t.Fatalf("nothing is stored: exit status %d: %s%s", status, out, said)
	}
	if status, _, said := run(t, "compact", file, "--budget", "16000", "-o", os.DevNull); status != exitDone {
		t.Fatal(said)
	}
	for _, name := range []string{onlyID, file} {
		status, _, said := run(t, "explain", name, "-o", "page.html")
		_, command, told := strings.Cut(said, "with 1 plan: palimpsest ")
		command, _, _ = strings.Cut(command, "\n")
		if status != exitDone || !told || strings.Count(said, "\n") != 2 {
			t.Fatalf("exit status %d: %s", status, said)
		}
		if status, _, said := run(t, append(strings.Fields(command), "-o", "page.html")...); status != exitDone || strings.Contains(said, "as it was stored") {
			t.Errorf("%s: exit status %d: %s", command, status, said)
		}
	}
}

// TestPlans: the plans of a conversation are listed with their sizes, the one in force first, and the commands that are
// told work.
func TestPlans(t *testing.T) {
	file := sessionOnMachine(t)
	for _, budget := range []string{"16000", "9000"} {
		if status, _, said := run(t, "compact", file, "--budget", budget, "-o", os.DevNull); status != exitDone {
			t.Fatal(said)
		}
	}
	list := func(pattern string, flags ...string) []string {
		t.Helper()
		_, out, said := run(t, append([]string{"threads", onlyID[:8]}, flags...)...)
		found := regexp.MustCompile(pattern).FindStringSubmatch(out)
		if found == nil {
			t.Fatalf("%s%s", out, said)
		}
		return found
	}
	list(`^plan .*\n +2 .*\nand 1 more: --most 2 shows all\nto see them: `, "--most", "1")
	list(`^\[{"plan_version":2,"tokens":\d+,"counter":"claude","made":".*","policy":"auto","tokens_before":\d+,"records":\d+},{"plan_version":1,`, "--json")
	told := list(`^plan +made +by +before +after +records\n +2 .* auto +1\d\d,\d{3} +[78],\d{3} +\d+\n +1 .* auto +1\d\d,\d{3} +1[0-6],\d{3} +\d+\nto see them: palimpsest (explain .*)\nto bring one back: palimpsest (undo .* --plan )NUMBER\n$`)
	for _, command := range []string{told[1] + " -o page.html", told[2] + "1"} {
		if status, _, said := run(t, strings.Fields(command)...); status != exitDone {
			t.Errorf("%s: %s", command, said)
		}
	}
}

// TestNothingStored: where nothing was stored, what stores a conversation is said, and where to look if the agent
// compacted by itself.
func TestNothingStored(t *testing.T) {
	file := sessionOnMachine(t)
	says := func(text string) bool {
		return strings.Contains(strings.Join(strings.Fields(text), " "), "`palimpsest compact FILE --budget 32000`, `palimpsest run --keep`") && strings.Contains(text, "palimpsest lost FILE")
	}
	for _, args := range [][]string{{"artifact", "list"}, {"recall", "x"}, {"undo", "x"}} {
		if status, _, said := run(t, args...); status != exitFailed || !says(said) {
			t.Errorf("%v: exit status %d: %s", args, status, said)
		}
	}
	if status, out, said := run(t, "threads"); status != exitDone || !says(out) {
		t.Errorf("threads: exit status %d: %s%s", status, out, said)
	}
	if status, _, said := run(t, "compact", file, "--budget", "32000", "-o", os.DevNull); status != exitDone {
		t.Errorf("the command that is said: %s", said)
	}
}

// TestRecallShown: where nothing that was removed has what a query asks for, messages that are still in the prompt are
// found, and said to be there.
func TestRecallShown(t *testing.T) {
	file := sessionOnMachine(t)
	if status, _, said := run(t, "compact", file, "--budget", "16000", "-o", os.DevNull); status != exitDone {
		t.Fatal(said)
	}
	const nothing = "nothing that was removed matches"
	const shown = nothing + ", but what is still in the prompt does:\n"
	const ofThread = `nothing that was removed from the thread "` + onlyID + `" matches, but what is still in the prompt does:` + "\n"
	for _, tt := range []struct{ query, flag, want string }{
		{"hoped", "", shown + "cbb278fa5b7b · turn 13 · user\n"},
		{"hoped", "--thread=" + onlyID, ofThread + "cbb278fa5b7b · turn 13 · user\n"},
		{"hoped release", "--thread=" + onlyID[:8], ofThread + "cbb278fa5b7b · turn 13 · user\n"}, // "release" was removed too
		{"hoped zebra", "", nothing + "; `palimpsest threads` lists what is searched\n"},
		{"retry zebra", "", "No message that was searched contains zebra. Nearest:\n"},
		{`"that is what I hoped for"`, "", shown + "cbb278fa5b7b · turn 13 · user\n"},
		{"hoped release", "--limit=1", shown + "cbb278fa5b7b · turn 13 · user\n"},
		{"zebra", "", nothing + "; `palimpsest threads` lists what is searched\n"},
		{"hoped", "--tool=Read", nothing + "; `palimpsest threads` lists what is searched\n"},
	} {
		status, out, said := run(t, append([]string{"recall", tt.query}, strings.Fields(tt.flag)...)...)
		if status != exitDone || !strings.HasPrefix(out, tt.want) {
			t.Errorf("%s %s: exit status %d: %s%s", tt.query, tt.flag, status, out, said)
		}
		if _, get, told := strings.Cut(out, "a message in full: palimpsest "); told && strings.HasPrefix(tt.want, nothing) {
			if status, text, said := run(t, strings.Fields(get)...); status != exitDone || !strings.Contains(text, "hoped") {
				t.Errorf("%s: exit status %d: %s%s", get, status, text, said)
			}
		}
	}
	if status, out, _ := run(t, "recall", "hoped", "--json"); status != exitDone || !strings.Contains(out, `"action":"include"`) {
		t.Errorf("exit status %d: %s", status, out)
	}
}

// TestPinAndExpand: what hides a message is gone from the plan then, and said; undo takes it back. A message that is
// pinned stays in the prompts of compactions that come.
func TestPinAndExpand(t *testing.T) {
	file := sessionOnMachine(t)
	command := func(want int, line string) string {
		t.Helper()
		status, out, said := run(t, append(strings.Fields(line), "--store", "kept.db")...)
		if status != want {
			t.Fatalf("%s: exit status %d: %s%s", line, status, out, said)
		}
		return out + said
	}
	command(exitDone, "compact "+file+" --budget 16000 -o "+os.DevNull)
	message := strings.Fields(command(exitDone, "recall retry"))[0]
	artifacts := 0 // of messages that are stored outside, and of results that a summary kept: the list shows them by these ids
	for _, id := range strings.Fields(command(exitDone, "artifact list --thread "+onlyID)) {
		if strings.HasPrefix(id, "art_") {
			artifacts++
			command(exitDone, "pin "+onlyID+" "+id[:10])
			if again := command(exitDone, "pin "+onlyID+" "+id); !strings.Contains(again, "is pinned already;") {
				t.Errorf("pinned again: %s", again)
			}
			command(exitDone, "pin --free "+onlyID+" "+id)
			if again := command(exitDone, "pin --free "+onlyID+" "+id); !strings.Contains(again, "is not pinned;") {
				t.Errorf("freed again: %s", again)
			}
			command(exitDone, "undo "+onlyID+" --plan 1")
		}
	}
	if artifacts < 2 {
		t.Fatalf("%d artifacts are listed", artifacts)
	}
	for _, verb := range []string{"pin", "expand"} {
		if said := command(exitDone, verb+" "+onlyID+" "+message); !strings.Contains(said, " shown again, ") || !strings.Contains(said, "palimpsest undo "+onlyID) {
			t.Errorf("%s: %s", verb, said)
		}
		if said := command(exitFailed, "expand "+onlyID+" "+message); !strings.Contains(said, "does not hide it") {
			t.Errorf("%s: it is hidden still: %s", verb, said)
		}
		command(exitDone, "undo "+onlyID)
	}
	command(exitDone, "expand "+onlyID+" "+message)
	for line, want := range map[string]string{
		"expand " + onlyID + " " + message:  "does not hide it",
		"pin " + onlyID + " nosuch":         "nosuch: message id is not in the thread " + onlyID + ": `palimpsest recall",
		"pin " + onlyID + " " + message[:2]: "give 6 characters or more of the id",
	} {
		if said := command(exitFailed, line); !strings.Contains(said, want) || strings.Count(said, "is not in the thread") > 1 {
			t.Errorf("%s: %s", line, said)
		}
	}
}

// TestNameOfOtherKind: a session of which nothing was stored where a THREAD is wanted, and a stored conversation where a
// FILE is, are told as what they are, with the command that helps. Those work.
func TestNameOfOtherKind(t *testing.T) {
	prompt, err := os.ReadFile("../../testdata/sessions/small.openai-chat.json")
	if err != nil {
		t.Fatal(err)
	}
	sessionOnMachine(t)
	putFile(t, "px-7.json", string(prompt), 0o600)
	if status, _, said := run(t, "compact", "px-7.json", "--budget", "3000", "-o", os.DevNull); status != exitDone {
		t.Fatal(said)
	}
	_, listed, _ := run(t, "threads", "--json")
	stored := regexp.MustCompile(`"thread_id":"([^"]+)"`).FindStringSubmatch(listed)
	if stored == nil {
		t.Fatal(listed)
	}
	for _, tt := range []struct{ command, want, then string }{
		{"pin " + onlyID[:8] + " x", onlyID[:8] + " is the session " + onlyID + " of claude-code, of which nothing was stored: `palimpsest compact " + onlyID[:8] + " --budget 32000` stores it", "compact " + onlyID[:8] + " --budget 32000 -o page.json"},
		{"pin " + onlyID[:8] + " x", "x: message id is not in the thread " + onlyID, ""},
	} {
		if status, _, said := run(t, strings.Fields(tt.command)...); status != exitFailed || !strings.Contains(said, tt.want) {
			t.Errorf("%s: exit status %d: %s", tt.command, status, said)
		}
		if status, _, said := run(t, strings.Fields(tt.then)...); tt.then != "" && status != exitDone {
			t.Errorf("%s: exit status %d: %s", tt.then, status, said)
		}
	}
}

// TestFilterWithoutValue: the name of a filter at the end of a query wants a value, and from: and turn: one of theirs;
// elsewhere and in quotes it is a word.
func TestFilterWithoutValue(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store.db")
	if status, _, told := run(t, "compact", smallSession, "--budget", "3000", "--store", store, "-o", filepath.Join(t.TempDir(), "p.json")); status != exitDone {
		t.Fatal(told)
	}
	for query, refused := range map[string]bool{"file:": true, "retry before:": true, "FROM:": true, "note:": false, "file: client": false, `"file:"`: false,
		"from:usr retry": true, "turn:abc retry": true, "turn:9-3 retry": true, `"from:usr" retry`: false, "turn:3-9 From:User retry": false, "on:click retry": false} {
		status, _, told := run(t, "recall", query, "--store", store)
		if wrong := status == exitUsage && strings.Contains(told, "wants a value behind it"); wrong != refused {
			t.Errorf("%s: status %d, told %q", query, status, told)
		}
	}
}
