package toolclass

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func result(tool, text string, outcome thread.Outcome) thread.ToolResult {
	return thread.ToolResult{Tool: tool, Outcome: outcome, Content: []thread.Part{thread.Text{Text: text}}}
}

// A9: the common tools of the common agents are known by whatever name.
func TestClassOf(t *testing.T) {
	for name, want := range map[string]Class{
		"Read": Read, "read": Read, "read_file": Read, "ReadFile": Read, "mcp__filesystem__read_text_file": Read, "functions.read_file": Read,
		"Grep": Search, "search_file_content": Search, "search_dir": Search, "grep_search": Search,
		"Glob": List, "list_directory": List, "ls": List, "find_file": List,
		"Bash": Shell, "shell": Shell, "local_shell": Shell, "exec_command": Shell, "run_shell_command": Shell, "execute_bash": Shell, "container.exec": Shell,
		"Edit": Edit, "MultiEdit": Edit, "apply_patch": Edit, "str_replace_editor": Edit, "str_replace_based_edit_tool": Edit, "NotebookEdit": Edit, "replace": Edit,
		"Write": Write, "write_file": Write, "create": Write,
		"WebFetch": Fetch, "web_fetch": Fetch, "fetch": Fetch, "WebSearch": Web, "google_web_search": Web,
		"Task": Agent, "spawn_agent": Agent, "TodoWrite": Todo, "update_plan": Todo, "todowrite": Todo, "write_todos": Todo,
		"read_artifact": Recall, "recall": Recall, "palimpsest_recall": Recall, "mcp__palimpsest__read_artifact": Recall,
		// The lists of other programs are not the agent's own plan.
		"TaskList": Todo, "functions.update_plan": Todo, "todo__todo_write": Todo, "task_list": Other, "mcp__tracker__task_list": Other, "mcp__tracker__TodoWrite": Other, "tracker.update_plan": Other,
		"create_order": Other, "": Other, "mcp__shop__": Other,
	} {
		if got := ClassOf(name); got != want {
			t.Errorf("ClassOf(%q) = %q, want %q", name, got, want)
		}
	}
	entries := 0
	for _, names := range named {
		entries += len(strings.Fields(names))
	}
	if entries != len(classes) || len(classes) < 160 {
		t.Errorf("%d entries of the table make %d names: one stands there twice", entries, len(classes))
	}
	for name := range classes {
		if Normal(name) != name {
			t.Errorf("%q in the table is not in normal form and would never be found", name)
		}
	}
}

// A6, A9: the fields that survive when a result is cleared.
func TestKeyFields(t *testing.T) {
	for _, c := range []struct {
		name   string
		call   thread.ToolCall
		result thread.ToolResult
		want   thread.Fields
	}{
		{"read", thread.ToolCall{Name: "Read", Arguments: `{"file_path":"/a/b.go","offset":10,"limit":20}`}, result("Read", "a\nb\nc\n", thread.Success),
			thread.Fields{"path": "/a/b.go", "offset": 10.0, "limit": 20.0, "lines": 3}},
		{"read by opencode", thread.ToolCall{Name: "read", Arguments: `{"filePath":"/a/b.go","limit":20}`}, result("read", "a\nb\nc\n", thread.Success),
			thread.Fields{"path": "/a/b.go", "limit": 20.0, "lines": 3}},
		{"failed command", thread.ToolCall{Name: "Bash", Arguments: `{"command":"go test ./..."}`},
			result("Bash", "Exit code 1\n# pkg\nok  \tpkg/a\n--- FAIL: TestX (0.0s)\n    x_test.go:9: got 1, want 2\nFAIL\n", thread.Failure),
			thread.Fields{"command": "go test ./...", "exit_code": 1, "error": "--- FAIL: TestX (0.0s)", "lines": 6}},
		{"search", thread.ToolCall{Name: "grep", Arguments: `{"pattern":"func Parse","path":"src"}`}, result("grep", "a:1\nb:2\n", thread.Success),
			thread.Fields{"pattern": "func Parse", "path": "src", "lines": 2}},
		{"two names of one field", thread.ToolCall{Name: "grep", Arguments: `{"glob":"*.go","pattern":"Parse","query":"q","directory":"d","path":"src"}`}, result("grep", "a:1\nb:2\n", thread.Success),
			thread.Fields{"pattern": "Parse", "path": "src", "lines": 2}},
		{"search that was cut", thread.ToolCall{Name: "grep", Arguments: `{"pattern":"Parse"}`}, result("grep", "a:1\n\n... [6 lines truncated] ...\nb:2\n", thread.Success),
			thread.Fields{"pattern": "Parse", "lines": 4}},
		{"search that counts", thread.ToolCall{Name: "grep", Arguments: `{"pattern":"Parse"}`}, result("grep", "Found 12 matches\na:1\n\n(more)\n", thread.Success),
			thread.Fields{"pattern": "Parse", "matches": 12, "lines": 4}},
		{"fetch", thread.ToolCall{Name: "web_fetch", Arguments: `{"url":"https://example.org/x"}`}, result("web_fetch", "one line", thread.Success),
			thread.Fields{"url": "https://example.org/x"}},
		{"free text argument", thread.ToolCall{Name: "apply_patch", Arguments: "*** Begin Patch"}, result("apply_patch", "Done", thread.Success), thread.Fields{}},
		{"file that talks about errors", thread.ToolCall{Name: "Read", Arguments: `{"path":"x"}`}, result("Read", "error: not ours", thread.Success), thread.Fields{"path": "x"}},
		{"empty", thread.ToolCall{}, thread.ToolResult{}, thread.Fields{}},
	} {
		if diff := cmp.Diff(c.want, KeyFields(c.call, c.result, nil)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

// TestSource: whatever an agent calls the argument, a read and a write of a file have one source.
func TestSource(t *testing.T) {
	want := Source(thread.ToolCall{Name: "Read", Arguments: `{"file_path":"/a/b.go"}`})
	for _, name := range PathArguments {
		call := thread.ToolCall{Name: "edit", Arguments: `{"` + name + `":"/a/b.go","newString":"x"}`}
		if got := Source(call); got != want || Path(call) != "/a/b.go" {
			t.Errorf("%s: %q, %q, and not %q", name, got, Path(call), want)
		}
	}
}

func TestKeyFieldsAreShort(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + strings.Repeat(rapid.String().Draw(t, "more"), 50)
		args := rapid.OneOf(rapid.String(), rapid.Just(`{"path":"`+strings.Repeat("ä", 900)+`","command":["a",1]}`)).Draw(t, "args")
		outcome := rapid.SampledFrom([]thread.Outcome{"", thread.Success, thread.Failure, thread.Partial}).Draw(t, "outcome")
		tool := rapid.SampledFrom([]string{"bash", "read", "grep", "x", ""}).Draw(t, "tool")
		fields := KeyFields(thread.ToolCall{Name: tool, Arguments: args}, result(tool, text, outcome), []string{"a", "path"})
		for name, v := range fields {
			s, ok := v.(string)
			if ok && (utf8.RuneCountInString(s) > maxField || !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r")) {
				t.Fatalf("field %s is not short and clean: %q", name, s)
			}
		}
	})
}

func FuzzKeyFields(f *testing.F) {
	f.Add("Bash", `{"command":"ls"}`, "exit code 127\nnot found")
	f.Add("", "{", "\xff exit status -")
	f.Fuzz(func(t *testing.T, tool, args, text string) {
		fields := KeyFields(thread.ToolCall{Name: tool, Arguments: args}, result(tool, text, thread.Failure), nil)
		if text != "" && strings.TrimSpace(text) != "" && utf8.ValidString(text) && strings.TrimFunc(text, func(r rune) bool { return r < '!' }) != "" && fields["error"] == nil {
			t.Fatalf("a failure with text %q has no error field: %v", text, fields)
		}
	})
}

// TestResultOfUnknownTool: what an unknown tool said about what it was asked for
// survives clearing, and a declaration replaces the guess. A6, A9
func TestResultOfUnknownTool(t *testing.T) {
	report := "Visit of D-1000\n" + strings.Repeat("aisle in order\n", 30) + "D-1000: stock 714\n" + strings.Repeat("aisle in order\n", 30)
	for _, c := range []struct {
		name, arguments, text string
		outcome               thread.Outcome
		want                  any
	}{
		{"lines that name the argument", `{"depot":"D-1000"}`, report, thread.Success, "Visit of D-1000 | D-1000: stock 714"},
		{"a short result", `{"n":1}`, " 42 items\n", thread.Success, "42 items"},
		{"nothing of it is named", `{"depot":"D-2000"}`, report, thread.Success, nil},
		{"too short to be a name", `{"depot":"D-"}`, report, thread.Success, nil},
		{"a failure has its error line", `{"depot":"D-1000"}`, report, thread.Failure, nil},
	} {
		r := thread.ToolResult{Tool: "visit_depot", Outcome: c.outcome, Content: []thread.Part{thread.Text{Text: c.text}}}
		fields := KeyFields(thread.ToolCall{Name: "visit_depot", Arguments: c.arguments}, r, nil)
		if fields["result"] != c.want {
			t.Errorf("%s: %v", c.name, fields["result"])
		}
	}
	r := thread.ToolResult{Tool: "visit_depot", Outcome: thread.Success, KeyFields: thread.Fields{"stock": 714.0}, Content: []thread.Part{thread.Text{Text: report}}}
	fields := KeyFields(thread.ToolCall{Name: "visit_depot", Arguments: `{"depot":"D-1000"}`}, r, nil)
	if _, guessed := fields["result"]; guessed || fields["stock"] != 714.0 {
		t.Errorf("declared fields: %v", fields)
	}
}
