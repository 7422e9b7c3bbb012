package summarize

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestReadCall(t *testing.T) {
	type want struct {
		input string
		files []shell.FileOp
		todos []todo
	}
	for name, c := range map[string]struct {
		tool, args string
		want       want
	}{
		"codex plan":     {"update_plan", `{"plan":[{"step":"a","status":"completed"},{"step":"b","status":"in_progress"}]}`, want{todos: []todo{{"a", "completed", ""}, {"b", "in_progress", ""}}}},
		"checklist":      {"update_todo_list", `{"todos":"[x] a\n[-] b\n[ ] c"}`, want{todos: []todo{{"a", "completed", ""}, {"b", "in_progress", ""}, {"c", "pending", ""}}}},
		"vs code":        {"manage_todo_list", `{"operation":"write","todoList":[{"id":1,"title":"a","status":"not-started"}]}`, want{todos: []todo{{"a", "not-started", ""}}}},
		"codex shell":    {"shell", `{"command":["bash","-lc","rm a.txt"]}`, want{input: "rm a.txt", files: []shell.FileOp{{Path: "a.txt", Op: "deleted"}}}},
		"patch":          {"apply_patch", "*** Begin Patch\n*** Update File: a.go\n+x_1 := 2\n*** Add File: b.go\n+y\n*** Delete File: c.go\n*** End Patch", want{input: "a.go, b.go, c.go", files: []shell.FileOp{{Path: "a.go", Op: "edited"}, {Path: "b.go", Op: "created"}, {Path: "c.go", Op: "deleted"}}}},
		"patch by shell": {"shell", `{"command":["apply_patch","*** Begin Patch\n*** Add File: n.go\n+z\n*** End Patch"]}`, want{input: "n.go", files: []shell.FileOp{{Path: "n.go", Op: "created"}}}},
		"text editor":    {"str_replace_based_edit_tool", `{"command":"view","path":"/a.py","view_range":[3,9]}`, want{input: "/a.py", files: []shell.FileOp{{Path: "/a.py", Op: "read"}}}},
		"create":         {"str_replace_editor", `{"command":"create","path":"/a.py","file_text":"x"}`, want{input: "/a.py", files: []shell.FileOp{{Path: "/a.py", Op: "created"}}}},
		"many":           {"read_many_files", `{"paths":["a.go","./b.go"]}`, want{input: `["a.go","./b.go"]`, files: []shell.FileOp{{Path: "a.go", Op: "read"}, {Path: "b.go", Op: "read"}}}},
		"search":         {"Grep", `{"pattern":"func X","path":"src","output_mode":"content","-n":true}`, want{input: "pattern=func X path=src"}},
		"move":           {"move_file", `{"source":"a","destination":"b"}`, want{files: []shell.FileOp{{Path: "a", Op: "deleted", Note: "moved to b"}, {Path: "b", Op: "created", Note: "moved from a"}}, input: "source=a destination=b"}},
		"broken":         {"Bash", `{"command":"ls`, want{input: `{"command":"ls`}},
	} {
		f := readCall(nil, &thread.ToolCall{Name: c.tool, Arguments: c.args})
		got := want{f.Input, f.Files, f.todos}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(want{}, todo{}), cmpopts.IgnoreFields(shell.FileOp{}, "By"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// A6: the outcome is the provider's flag, unless the text surely says otherwise.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		tool, command, text string
		flag, want          thread.Outcome
	}{
		{"Bash", "go test ./...", "ok  \tpkg\t0.1s", thread.Success, thread.Success},
		{"Bash", "go test ./...", "--- FAIL: TestX (0.0s)\nFAIL\tpkg\t0.1s", thread.Success, thread.Failure},
		{"Bash", "pytest", "== 2 failed, 3 passed in 0.1s ==", thread.Success, thread.Failure},
		{"Bash", "python x.py", "Traceback (most recent call last):\n  File \"x.py\", line 3\nValueError: no", thread.Success, thread.Failure},
		{"Bash", "cat test.log", "--- FAIL: TestX (0.0s)", thread.Success, thread.Success},
		{"Bash", "cd /x && git log", "fatal: an old commit message", thread.Success, thread.Success},
		{"Bash", "make", "Exit code 2\nmake: *** error", thread.Success, thread.Failure},
		{"Bash", "grep x y", "Exit code 1", thread.Success, thread.Partial},
		{"Bash", "grep x y", "a.go: exit code: 1", thread.Success, thread.Success},
		{"Bash", "git push", "Exit code 1\nrejected", thread.Success, thread.Failure},
		{"Bash", "go run ./cmd/x 2>&1 | head", "usage: x\nexit status 1", thread.Success, thread.Failure},
		{"Bash", "make", "exit status 1 means that a flag is wrong", thread.Success, thread.Success},
		{"Bash", "make", "no error: all fine", thread.Success, thread.Success},
		{"Bash", "make", "all fine", thread.Failure, thread.Failure},
		{"Read", "", "panic: in a file that was read", thread.Success, thread.Success},
		{"x", "", "{\"error\":\"none\"}", thread.Partial, thread.Partial},
	} {
		r := readResult(nil, thread.ToolResult{Tool: c.tool, Outcome: c.flag, Content: []thread.Part{thread.Text{Text: c.text}}})
		call := readCall(nil, &thread.ToolCall{Name: c.tool, Arguments: `{"command":"` + c.command + `"}`})
		if got := judge(r, &call, call.Class); got != c.want {
			t.Errorf("%s %q with %q flagged %s: got %s, want %s", c.tool, c.command, c.text, c.flag, got, c.want)
		}
	}
}

func TestTellsWhy(t *testing.T) {
	for s, want := range map[string]bool{"The musty smell of neverland": false, "Let me look at it.": false, "I'll use a map because lookups are many": true} {
		if got := (&piece{text: s}).tellsWhy(); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
