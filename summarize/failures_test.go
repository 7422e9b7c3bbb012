package summarize

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestAttemptText: a failed attempt quotes what the assistant said and changed next.
func TestAttemptText(t *testing.T) {
	a := &attempt{why: "Bash go test => FAIL", said: "The index is off by one.", mends: []repair{{file: "src/parse.go", source: "m7"}}}
	if got, want := a.text(), a.why+" | then the assistant: The index is off by one. | edited next: src/parse.go"; got != want || whyFailed(got) != a.why {
		t.Errorf("%q, of which %q is why", got, whyFailed(got))
	}
}

// TestEditedTwice: a file that was edited twice, with nothing told of either edit, is named once.
func TestEditedTwice(t *testing.T) {
	a := &attempt{why: "make => exit 2", mends: []repair{{file: "src/parse.go"}, {file: "src/parse.go"}, {file: "parse.go"}}}
	if got, want := a.text(), "make => exit 2 | edited next: src/parse.go | edited next: parse.go"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAttemptCarriedOn: an attempt of the summary that is replaced is not told again in other
// words when its messages come up once more.
func TestAttemptCarriedOn(t *testing.T) {
	k := (&talk{}).user("Fix it.").calls("Bash", args{"command": "go test ./..."}, "FAIL: TestParse", thread.Failure)
	k.says("The cause is an index without a check in parse.go.")
	in := Input{Messages: k.done(t)}
	previous := summary.Summary{FailedAttempts: []summary.Item{{Text: "Bash go test ./... => FAIL: TestParse | then the assistant: The cause is an index without a check in parse.go."}}}
	in.Previous = &previous
	if s := summarizeNow(t, in); len(s.FailedAttempts) != 1 {
		t.Errorf("failures: %q", texts(s.FailedAttempts))
	}
}

// TestRejectedCall: what the user said when rejecting a call is told, and not how the harness
// puts it; a tool that passes on texts of others cannot imitate it.
func TestRejectedCall(t *testing.T) {
	const refused = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file)."
	const said = refused + " To tell you how to proceed, the user said:\nhow can we tell\nwhat the main branch is?"
	for _, tt := range []struct {
		tool, result string
		denied       bool // by the agent's own record
		want         string
	}{
		{"Bash", said, true, "Bash git push => the user said: how can we tell what the main branch is?"},
		{"Bash", refused, true, "Bash git push => the user did not allow it"},
		{"NotebookEdit", said, false, "NotebookEdit git push => the user said: how can we tell what the main branch is?"},
		{"Bash", said, false, `Bash git push => the result says: "` + strings.ReplaceAll(said, "\n", " ") + `" | it succeeded later, in turn 1`},
		{"Bash", refused, false, ""},
		{"WebFetch", said, true, "WebFetch git push => the user said: how can we tell what the main branch is?"},
		{"WebFetch", said, false, ""},
	} {
		k := (&talk{}).user("Go.").calls(tt.tool, args{"command": "git push"}, tt.result, thread.Failure)
		last := k.messages[len(k.messages)-1].Parts
		r := last[0].(thread.ToolResult)
		r.Denied = tt.denied
		injected.Settle("claude-code", "", &thread.ToolCall{Name: tt.tool}, &r)
		last[0] = r
		k.calls("Bash", args{"command": "git push"}, "done", thread.Success)
		var got []string
		for _, it := range summarizeNow(t, Input{Messages: k.done(t)}).FailedAttempts {
			if strings.Contains(it.Text, "the user said") || strings.Contains(it.Text, "did not allow") {
				got = append(got, it.Text)
			}
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("%s, %q: %q", tt.tool, tt.result, got)
		}
	}
}

// TestLaterSuccess: the first success of the same call counts, and what grep left of an output
// does not.
func TestLaterSuccess(t *testing.T) {
	fails := func(k *talk) *talk {
		return k.calls("Bash", args{"command": "make lint"}, "a.go:1:2: error: x", thread.Failure)
	}
	passes := func(k *talk) *talk {
		return k.calls("Bash", args{"command": "make lint"}, "0 issues.", thread.Success)
	}
	k := passes(fails((&talk{}).user("Lint it.")))
	k = passes(k.user("And once more, please."))
	s := summarizeNow(t, Input{Messages: k.done(t)})
	if len(s.FailedAttempts) != 1 || !strings.HasSuffix(s.FailedAttempts[0].Text, "it succeeded later, in turn 1") {
		t.Errorf("failures: %q", texts(s.FailedAttempts))
	}
	for _, tt := range []struct {
		failed, later, out string
		works              bool
	}{
		{"make lint", "make lint 2>&1 | grep error", "", false},
		{"docker build .", "docker build . 2>&1 | tail -3", "ERROR: failed to solve: no such file", false},
		{"docker build .", "docker build . 2>&1 | tail -3", "exporting layers", false},
		{"docker build . 2>&1 | tail -3", "docker build .", "exporting layers", true},
		{"go test ./...", "go test ./... 2>&1 | tail -3", "ok  \tx/y\t0.1s", true},
		{"go build ./...", "go build ./... 2>&1 | head -5", "", true},
		{`grep -E "x|tail" a.txt`, `grep -E "x|head" b.txt`, "x", false},
	} {
		k := (&talk{}).user("Try it.").calls("Bash", args{"command": tt.failed}, "a.go:1:2: error: x", thread.Failure)
		k.says("That did not work.").calls("Bash", args{"command": tt.later}, tt.out, thread.Success)
		if s := summarizeNow(t, Input{Messages: k.done(t)}); strings.Contains(strings.Join(texts(s.FailedAttempts), "\n"), "later") != tt.works {
			t.Errorf("%s, then %s: %q", tt.failed, tt.later, texts(s.FailedAttempts))
		}
	}
}

// TestLaterSuccessOfEarlierSpan: a failure that a previous summary tells is repaired in this span.
func TestLaterSuccessOfEarlierSpan(t *testing.T) {
	first := (&talk{}).user("Lint it.").calls("Bash", args{"command": "make lint"}, "a.go:1:2: error: x", thread.Failure).says("One finding.")
	previous := summarizeNow(t, Input{Messages: first.done(t)})
	for _, works := range []bool{true, false} {
		out, end := "0 issues.", thread.Success
		if !works {
			out, end = "a.go:1:2: error: x", thread.Failure
		}
		k := (&talk{n: 10}).user("Once more, please.").calls("Bash", args{"command": "make lint"}, out, end)
		s := summarizeNow(t, Input{Messages: k.done(t), Previous: &previous})
		if len(s.FailedAttempts) == 0 || !strings.HasPrefix(s.FailedAttempts[0].Text, "Bash make lint") || strings.Contains(s.FailedAttempts[0].Text, thenWorked) != works {
			t.Errorf("works %v: %q", works, texts(s.FailedAttempts))
		}
	}
}

// TestMendingEdits: a failed check is told with the edits after it, another command and a
// document with none; a failed edit with the next that tries the same.
func TestMendingEdits(t *testing.T) {
	edit := func(file, from, to string, end thread.Outcome) func(*talk) {
		return func(k *talk) {
			k.calls("Edit", args{"file_path": file, "old_string": from, "new_string": to}, "ok", end)
		}
	}
	bash := func(command, result string) func(*talk) {
		return func(k *talk) { k.calls("Bash", args{"command": command}, result, thread.Failure) }
	}
	code := edit("/r/parse.go", "n := 1", "limit := 0", thread.Success)
	for _, tt := range []struct {
		name   string
		failed func(*talk)
		next   func(*talk)
		mends  bool
	}{
		{"a check", bash("go test ./...", "--- FAIL: TestX"), code, true},
		{"another command", bash("python3 show.py", "SyntaxError: invalid syntax"), code, false},
		{"a document", bash("go test ./...", "--- FAIL: TestX"), edit("/r/README.md", "old words", "new words", thread.Success), false},
		{"a document that it names", bash("make lint", "README.md:3:1: error: line too long"), edit("/r/README.md", "old words", "new words", thread.Success), true},
		{"an edit", edit("/r/parse.go", "n:=1", "limit := 0", thread.Failure), code, true},
		{"an edit of another file", edit("/r/print.go", "x", "printer()", thread.Failure), code, false},
		{"of a later turn", func(k *talk) {
			bash("go test ./...", "--- FAIL: TestX")(k)
			k.user("By the way, keep the old code around.")
		}, code, false},
	} {
		k := (&talk{}).user("Fix it, please.")
		tt.failed(k)
		tt.next(k)
		s := summarizeNow(t, Input{Messages: k.done(t)})
		if got := strings.Contains(strings.Join(texts(s.FailedAttempts), "\n"), thenEdited); got != tt.mends {
			t.Errorf("%s: %q", tt.name, texts(s.FailedAttempts))
		}
	}
}

// TestCanceledCall: a call that the agent broke off since one beside it failed is no failure of its
// own, and edits behind it mend nothing of it.
func TestCanceledCall(t *testing.T) {
	for _, result := range []string{"<tool_use_error>Sibling tool call errored</tool_use_error>", "<tool_use_error>Cancelled: parallel tool call Bash(make lint) errored</tool_use_error>"} {
		k := (&talk{}).user("Mend the build.").calls("Bash", args{"command": "make build"}, result, thread.Failure)
		k.calls("Edit", args{"file_path": "/src/a.go", "old_string": "one", "new_string": "two"}, "The file /src/a.go has been updated.", thread.Success)
		k.says("The build should pass now.")
		s := summarizeNow(t, Input{Messages: k.done(t)})
		if len(s.FailedAttempts) != 0 || len(s.ToolOutcomes) != 0 || len(s.Work.Checks) != 0 {
			t.Errorf("%s: %q, %v, %v", result, texts(s.FailedAttempts), s.ToolOutcomes, s.Work.Checks)
		}
		k = (&talk{}).user("Book it.").calls("mcp__hotel__book", args{"room": "12"}, result, thread.Failure)
		if s := summarizeNow(t, Input{Messages: k.done(t)}); len(s.Work.Operations) != 1 || s.Work.Operations[0].Refused || s.Work.Operations[0].Outcome != "" || s.Work.Operations[0].Reason == "" {
			t.Errorf("%s: %+v", result, s.Work.Operations)
		}
	}
}

// TestErrorTags: what a harness writes around the error of a tool is no part of it.
func TestErrorTags(t *testing.T) {
	const found = "Found 2 matches of the string to replace."
	k := (&talk{}).user("Mend it.").calls("Edit", args{"file_path": "/src/a.go", "old_string": "one", "new_string": "two"}, "<tool_use_error>"+found+"</tool_use_error>", thread.Failure)
	k.says("There are two of them, so I stop here.")
	if got := texts(summarizeNow(t, Input{Messages: k.done(t)}).FailedAttempts); len(got) != 1 || !strings.HasSuffix(got[0], "=> "+found) {
		t.Errorf("%q", got)
	}
}

// TestNoResultKept: of a call whose agent keeps no results nobody says that it was done, nor that it failed.
func TestNoResultKept(t *testing.T) {
	k := (&talk{}).user("Book it.").calls("mcp__hotel__book", args{"room": "12"}, injected.NoResult, "")
	k.calls("Shell", args{"command": "make build"}, injected.NoResult, "").calls("Grep", args{"pattern": "room"}, injected.NoResult, "")
	s := summarizeNow(t, Input{Messages: k.done(t)})
	if o := s.Work.Operations; len(o) != 1 || o[0].Outcome != "" || o[0].Reason != "" || len(s.ToolOutcomes) != 0 || len(s.FailedAttempts) != 0 {
		t.Errorf("%+v, %+v, %q", o, s.ToolOutcomes, texts(s.FailedAttempts))
	}
}

// TestCanceledCallAnswersNothing: a call that was broken off or refused is no news of what the same
// call answered before, and what it was to write is not told as a failure.
func TestCanceledCallAnswersNothing(t *testing.T) {
	for _, result := range []string{canceled, "The user doesn't want to proceed with this tool use. The tool use was rejected."} {
		for tool, with := range map[string]args{"Grep": {"pattern": "relayPort"}, "Bash": {"command": "git status --short"}} {
			k := (&talk{}).user("Make the relay faster, please.").calls(tool, with, "src/relay_pool.go:1:relayPort\nsrc/relay_dial.go:2:relayPort", thread.Success)
			in := Input{Messages: k.says("I see.").done(t), Budget: 600}
			in.Context = (&talk{n: 10}).calls(tool, with, result, thread.Failure).done(t)
			if got := summarizeNow(t, in).Render(); !strings.Contains(got, "relay_dial") {
				t.Errorf("%s, %s later: the answer is gone\n%s", tool, result, got)
			}
			k.calls(tool, with, result, thread.Failure)
			if got := summarizeNow(t, Input{Messages: k.says("I see.").done(t), Budget: 600}).Render(); !strings.Contains(got, "relay_dial") {
				t.Errorf("%s, %s: the answer is gone\n%s", tool, result, got)
			}
		}
	}
	k := (&talk{}).user("Make the relay faster, please.").calls("Edit", args{"file_path": "/src/a.go", "old_string": "a", "new_string": "func bootRelay() error {"}, canceled, thread.Failure)
	if got := summarizeNow(t, Input{Messages: k.says("I see.").done(t), Budget: 600}).Render(); strings.Contains(got, "failed Edit") {
		t.Errorf("told as a failure:\n%s", got)
	}
}

// TestOtherCalls: a call that differs from one that failed does not tell of it.
func TestOtherCalls(t *testing.T) {
	long := strings.Repeat("x", 85)
	many := func(last string) args {
		return args{"a": long, "b": long, "c": long, "d": long, "e": long, "f": long, "z": last}
	}
	for _, tt := range []struct {
		name          string
		failed, other args
	}{
		{"another text to look for", args{"search": "foo", "repo": "r"}, args{"search": "bar", "repo": "r"}},
		{"another of many arguments", many("one"), many("two")},
	} {
		k := (&talk{}).user("Look it up.").calls("mcp__s__lookup", tt.failed, "no such thing: foo", thread.Failure).says("It knows no such thing.")
		k.calls("mcp__s__lookup", tt.other, "found it", thread.Success).says("There it is.")
		s := summarizeNow(t, Input{Messages: k.done(t)})
		if len(s.FailedAttempts) != 1 || strings.Contains(s.FailedAttempts[0].Text, thenWorked) || len(s.ToolOutcomes) != 2 {
			t.Errorf("%s: failures %q, calls %v", tt.name, texts(s.FailedAttempts), s.ToolOutcomes)
		}
	}
}
