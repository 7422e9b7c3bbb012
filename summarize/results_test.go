package summarize

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// provedCase is a log, and lines that its summary has and has not.
type provedCase struct {
	name string
	log  func(*talk)
	has  []string
	not  []string
}

func runProved(t *testing.T, tests []provedCase) {
	t.Helper()
	for _, tt := range tests {
		k := new(talk).user("Do it, please.")
		tt.log(k)
		text := summarizeNow(t, Input{Messages: k.says("I see.").done(t)}).Render()
		for _, line := range tt.has {
			if !strings.Contains(text, line) {
				t.Errorf("%s: %q is missing in\n%s", tt.name, line, text)
			}
		}
		for _, line := range tt.not {
			if strings.Contains(text, line) {
				t.Errorf("%s: %q stands in\n%s", tt.name, line, text)
			}
		}
	}
}

// said adds a call whose result has no flag, as of OpenAI's chat format.
func (k *talk) said(tool string, with any, result string) *talk {
	return k.calls(tool, with, result, thread.Success)
}

// shell adds a command line whose result has no flag.
func (k *talk) shell(command, result string) *talk {
	return k.said("shell", args{"command": command}, result)
}

// TestEditNotMade: an edit that was not made is no change, whoever says so: the harness with an
// exit status, or the first line of the result.
func TestEditNotMade(t *testing.T) {
	swap := args{"filePath": "/r/pkg/parse.go", "oldString": "limit := 1", "newString": "limit := maximum"}
	const patch = "*** Begin Patch\n*** Update File: pkg/parse.go\n@@\n-limit := 1\n+limit := maximum\n*** End Patch"
	const failed = "Exit code: 1\nWall time: 0.1 seconds\nOutput:\napply_patch verification failed: Failed to find expected lines in pkg/parse.go"
	not := []string{"parse.go: edited", "edited, not committed"}
	edited := []string{"parse.go: edited", "edited, not committed"}
	runProved(t, []provedCase{
		{"the tool says so", func(k *talk) { k.said("edit", swap, "Error: oldString not found in content") }, nil, not},
		{"the file changed", func(k *talk) { k.said("edit", swap, "File /r/pkg/parse.go has been updated since it was last read.") }, nil, not},
		{"a patch in a shell", func(k *talk) { k.said("shell", args{"command": []string{"apply_patch", patch}}, failed) }, nil, not},
		{"a patch", func(k *talk) { k.said("apply_patch", patch, failed) }, nil, not},
		{"refused", func(k *talk) { k.said("edit", swap, "The user denied this operation.") }, nil, not},
		{"a path like an error", func(k *talk) { k.said("edit", swap, "Applied edit to /r/pkg/errors/must not.go") }, edited, nil},
		{"a patch that was made, before a check that failed", func(k *talk) {
			k.shell("apply_patch <<'EOF'\n"+patch+"\nEOF\ngo test ./...", "Exit code: 1\nWall time: 2 seconds\nOutput:\nSuccess. Updated the following files:\nM pkg/parse.go\nFAIL\tx/pkg")
		}, edited, nil},
		{"nothing is said", func(k *talk) { k.said("edit", swap, "") }, edited, nil},
	})
}

// TestEditBeforeFailure: what a command line did to files before one of its commands failed is
// told, and what stood there before is not.
func TestEditBeforeFailure(t *testing.T) {
	read := func(k *talk) *talk {
		return k.calls("Read", args{"file_path": "/r/pkg/x.go"}, "     1\tpackage pkg\n     2\tfunc oldTotal(items []itemRow) int {", thread.Success)
	}
	line := func(command, result string) func(*talk) {
		return func(k *talk) {
			k.calls("Bash", args{"command": "cd /r && go test ./..."}, "ok  \tr/pkg\t0.1s", thread.Success)
			read(k).calls("Bash", args{"command": command}, "Exit code 1\n"+result, thread.Failure)
			k.calls("Bash", args{"command": "grep -n oldTotal /r/doc.txt"}, "", thread.Success)
		}
	}
	const document = "cat > /r/pkg/x.go <<'EOF'\npackage pkg\nEOF\n"
	edited, gone := []string{"pkg/x.go: read, edited", "edited since: pkg/x.go"}, []string{"func oldTotal"}
	runProved(t, []provedCase{
		{"a list before", line(document+"cd /r && go test ./... -run X", "./x.go:3:1: undefined: total\nFAIL"), edited, gone},
		{"a chain before", line("cd /r && sed -i 's/oldTotal/total/' /r/pkg/x.go && go test ./... -run X", "FAIL\tr/pkg [build failed]"), edited, nil},
		{"a word like an error", line(document+"cd /r && make lint", "2 errors: see x.go"), edited, gone},
		{"it could not", line(document+"go test /r/...", "bash: line 1: /r/pkg/x.go: Permission denied"), nil, append(edited, gone...)},
		{"sed could not", line("sed -i 's/a/' /r/pkg/x.go && go test /r/...", "sed: -e expression #1, char 5: unterminated `s' command"), []string{"func oldTotal"}, edited},
		{"a chain behind a failure", line("go vet /r/... && cp /r/other.go /r/pkg/x.go", "vet: bad"), nil, append(edited, gone...)},
		{"a test that was false", func(k *talk) {
			k.calls("Bash", args{"command": "[ -f /r/a.txt ] && rm /r/pkg/x.go; ls /r"}, "doc.txt", thread.Success)
		}, nil, []string{"deleted"}},
		{"stopped in a later command", func(k *talk) {
			read(k).calls("Bash", args{"command": document + "go test /r/..."}, "ok  \tr/a\t0.1s\nCommand timed out after 120 seconds", thread.Failure)
		}, []string{"pkg/x.go: read, edited"}, gone},
	})
}

// TestStoppedCommand: what a command had printed when it was stopped says neither that it passed
// nor why it failed.
func TestStoppedCommand(t *testing.T) {
	for _, mark := range []string{
		"Command timed out after 120 seconds", "Command aborted",
		"<bash_metadata>\nbash tool terminated command after exceeding timeout 120000 ms. Retry with a larger one.\n</bash_metadata>",
	} {
		_, line, _ := strings.Cut("\n"+strings.TrimSuffix(mark, "\n</bash_metadata>"), "\n")
		line = line[strings.LastIndexByte(line, '\n')+1:]
		for _, flag := range []thread.Outcome{thread.Success, thread.Failure} {
			runProved(t, []provedCase{{mark, func(k *talk) {
				k.calls("bash", args{"command": "go test ./..."}, "ok  \tx/a\t0.1s\nok  \tx/b\t0.2s\n"+mark, flag)
			}, []string{"failed: bash go test ./... => " + line, "bash go test ./... => partial"}, []string{"passed", "=> ok", "succeeded"}}})
		}
	}
}

// TestHarnessLines: what a harness writes around an output is none of its lines.
func TestHarnessLines(t *testing.T) {
	const head = "Chunk ID: 05c894\nWall time: 0.0000 seconds\nProcess exited with code %d\nOriginal token count: 15\nOutput:\n"
	rows := "row token_budget=7\nb\nc\nd\nthe token is spent"
	runProved(t, []provedCase{
		{"Codex", func(k *talk) { k.shell("./count --all", fmt.Sprintf(head, 0)+"TOTAL-ROWS-7781") }, []string{"output=TOTAL-ROWS-7781"}, []string{"05c894", "Wall time", "exited with"}},
		{"Codex, failed", func(k *talk) { k.shell("go test ./...", fmt.Sprintf(head, 1)+"--- FAIL: TestRows_7781") }, []string{"--- FAIL: TestRows_7781"}, []string{"05c894", "Wall time", "exited with"}},
		{"nothing printed", func(k *talk) { k.shell("./count --all", fmt.Sprintf(head, 0)) }, nil, []string{"05c894", "Output:"}},
		{"a file that is printed", func(k *talk) { k.shell("cat notes/one.md", rows) }, nil, []string{"last="}},
		{"a program", func(k *talk) { k.shell("./count --all", rows) }, []string{"last=the token is spent"}, nil},
	})
}

// TestExitStatusInText: an exit status counts where a harness writes it, and nowhere else.
func TestExitStatusInText(t *testing.T) {
	const message = "git commit -m \"cli: exit code 2 for a wrong flag\n\nScripts can tell it from a failure.\""
	runProved(t, []provedCase{
		{"a subject", func(k *talk) { k.shell(message, "[main abc1234] cli: exit code 2 for a wrong flag\n 1 file changed") },
			[]string{"Scripts can tell it from a failure."}, []string{"partial", "exit_code"}},
		{"documentation", func(k *talk) { k.shell("make docs", "exit code 1 means that a flag is wrong") }, nil, []string{"failure", "failed:", "exit_code"}},
		{"a hit", func(k *talk) { k.said("Grep", args{"pattern": "exit"}, "cli.go:3: // exit code 2: a wrong flag") }, nil, []string{"exit_code"}},
		{"a harness that says no more", func(k *talk) { k.shell("make docs", "no rule\nexit code 2") }, []string{"exit_code=2", "failed: shell make docs => no rule"}, nil},
		{"a harness", func(k *talk) { k.shell("make docs", "no rule\n\nCommand exited with code 2") }, []string{"exit_code=2", "failed: shell make docs"}, nil},
		{"a commit that a hook stops", func(k *talk) {
			k.calls("Bash", args{"command": message}, "Exit code 1\nlint: a.go:1:2: bad", thread.Failure)
		},
			[]string{"failed: Bash git commit"}, nil},
	})
}

// TestWhatRan: a command that need not have run did nothing to a file, and all files that one
// changed are told.
func TestWhatRan(t *testing.T) {
	runProved(t, []provedCase{
		{"only if the first fails", func(k *talk) {
			k.calls("Bash", args{"command": "grep -q dist .gitignore || echo dist >> .gitignore"}, "", thread.Success)
		}, nil, []string{"edited"}},
		{"in a condition", func(k *talk) {
			k.calls("Bash", args{"command": "if [ -f a.txt ]; then rm a.txt; fi"}, "", thread.Success)
		}, nil, []string{"deleted"}},
		{"of Python", func(k *talk) { k.said("python", args{"code": "wide = size > limit.x"}, "") }, nil, []string{"created"}},
		{"several files", func(k *talk) {
			k.calls("Bash", args{"command": "sed -i 's/x/y/' pkg/a.go pkg/b.go"}, "", thread.Success)
		}, []string{"pkg/a.go: edited", "pkg/b.go: edited"}, nil},
		{"the index only", func(k *talk) { k.calls("Bash", args{"command": "git restore --staged pkg/a.go"}, "", thread.Success) }, nil, []string{"edited", "by git"}},
		{"put back", func(k *talk) {
			k.said("edit", args{"filePath": "pkg/a.go", "oldString": "// end", "newString": "func addedName() int {\n\treturn 7\n}"}, "Edit applied successfully.")
			k.calls("Bash", args{"command": "git checkout -- pkg/a.go"}, "", thread.Success)
		}, []string{"pkg/a.go: edited (turn 1) | restored by git"}, []string{"edited pkg/a.go: func addedName", "+ func addedName", "edited, not committed"}},
		{"put back, and changed again", func(k *talk) {
			k.calls("Bash", args{"command": "git checkout -- pkg/a.go"}, "", thread.Success)
			k.said("edit", args{"filePath": "pkg/a.go", "oldString": "// end", "newString": "func addedName() int {\n\treturn 7\n}"}, "Edit applied successfully.")
		}, []string{"func addedName"}, []string{"restored by git", "unknown since"}},
	})
}

// TestMemberNames: in a row of a JSON document values count, and neither the names of members nor templates.
func TestMemberNames(t *testing.T) {
	for row, want := range map[string]bool{
		`{"site_admin":false,"start_side":"RIGHT"}`:                                  false,
		`{"gists_url":"https://api.example.org/users/ann/gists{/gist_id}"}`:          false,
		`{"user":{"node_type":"User","is_owner":true}}`:                              false,
		`{"commit_id":"86b53171a5b18785b2dcd8e2f7167f3c656e326b","site_admin":true}`: true,
		`{"html_url":"https://example.org/r/pull/7"}`:                                true,
		`{"methods":{"gift_card_8190333":{"source":"gift","amount":true}}}`:          true,
	} {
		r := readResult(nil, thread.ToolResult{Tool: "Bash", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: row}}})
		if got := len(r.idLines) > 0; got != want {
			t.Errorf("%s: told %v, want %v: %+v", row, got, want, r.idLines)
		}
	}
}
