package summarize

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestSearchGoneThrough: of a search whose places are changed one after the other it is told what
// is left, until all is changed, the user goes on, or nobody knows.
func TestSearchGoneThrough(t *testing.T) {
	const grep = "src/a.go:10:\tx := old(1)\nsrc/a.go:20:\tx := old(1)\nsrc/a.go:30:\ty := old(2)\nlib/b.go:5:\tz := old(3)\nlib/c.go:7:\told(4)"
	search := func(l *logOf) *logOf {
		return l.env("<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>").op("Grep", map[string]any{"pattern": "old(", "output_mode": "content"}, grep)
	}
	change := func(l *logOf, file, before, after string) *logOf {
		return l.op("Edit", map[string]any{"file_path": "/repo/" + file, "old_string": before, "new_string": after}, "The file has been updated.")
	}
	two := func(l *logOf) *logOf {
		return change(change(search(l), "src/a.go", "\ty := old(2)\n\treturn", "\ty := new(2)\n\treturn"), "lib/b.go", "z := old(3)", "z := new(3)")
	}
	const left = `- of 5 places that a search showed for "old(" 2 were changed since; no edit seen of (lines as of then) `
	for _, tt := range []struct {
		name string
		log  func(*logOf)
		want string
	}{
		{"two of five", func(l *logOf) { two(l) }, left + "src/a.go:10,20, lib/c.go:7"},
		{"one of two that are alike", func(l *logOf) {
			change(change(search(l), "src/a.go", "before\n\tx := old(1)", "before\n\tx := new(1)"), "lib/b.go", "old(3)", "new(3)")
		}, left + "src/{a.go:10,20 (but 1 of these), a.go:30}, lib/c.go:7"},
		{"wherever it stands", func(l *logOf) {
			search(l).op("Edit", map[string]any{"file_path": "/repo/src/a.go", "old_string": "old(", "new_string": "new(", "replace_all": true}, "All occurrences were successfully replaced.")
		}, strings.Replace(left, " 2 ", " 3 ", 1) + "lib/{b.go:5, c.go:7}"},
		{"a part of a line that stays", func(l *logOf) { change(two(l), "lib/c.go", "old(4)\n}", "old(4)\n\treturn\n}") }, left + "src/a.go:10,20, lib/c.go:7"},
		{"an edit that failed", func(l *logOf) {
			two(l).call("Edit", map[string]any{"file_path": "/repo/lib/c.go", "old_string": "old(4)", "new_string": "new(4)"}).result("Edit", thread.Failure, "String to replace not found in file.")
		}, left + "src/a.go:10,20, lib/c.go:7"},
		{"one", func(l *logOf) { change(search(l), "lib/b.go", "old(3)", "new(3)") }, ""},
		{"the same search again", func(l *logOf) {
			two(l).op("Grep", map[string]any{"pattern": "old(", "output_mode": "content"}, "src/a.go:10:\tx := old(1)\nsrc/a.go:20:\tx := old(1)\nlib/c.go:7:\told(4)\nlib/d.go:8:\told(5)")
		}, `- of 4 places that a search showed for "old(" 0 were changed since, 2 before it; no edit seen of (lines as of then) src/a.go:10,20, lib/{c.go:7, d.go:8}`},
		{"a command changes a file", func(l *logOf) { two(l).ok("sed -i s/old/new/ lib/c.go", "") }, strings.Replace(left, "since;", "since, of 1 it is not known;", 1) + "src/a.go:10,20"},
		{"a command deletes a folder", func(l *logOf) { two(l).ok("rm -r lib", "") }, ""},
		{"a command changes files that it does not name", func(l *logOf) { two(l).ok("sed -i s/old/new/ src/*.go", "") }, ""},
		{"a script", func(l *logOf) { two(l).ok("python3 fix.py", "") }, ""},
		{"a line behind the place", func(l *logOf) { change(two(l), "lib/c.go", "old(4)", "old(4)\n\tlog()") }, left + "src/a.go:10,20, lib/c.go:7"},
		{"a part of the line", func(l *logOf) { change(two(l), "lib/c.go", "old(", "new(") }, strings.Replace(left, " 2 ", " 3 ", 1) + "src/a.go:10,20"},
		{"a part of two lines", func(l *logOf) {
			two(l).op("MultiEdit", map[string]any{"file_path": "/repo/lib/c.go", "edits": []any{map[string]any{"old_string": "old(", "new_string": "new("}, map[string]any{"old_string": "zzzz", "new_string": "yyyy"}}}, "The file has been updated.")
		}, strings.Replace(left, " 2 ", " 3 ", 1) + "src/a.go:10,20"},
		{"an edit that begins inside of the line", func(l *logOf) { change(two(l), "lib/c.go", "(4)\n\treturn", "(5)\n\treturn") }, strings.Replace(left, "since;", "since, of 1 it is not known;", 1) + "src/a.go:10,20"},
		{"an edit by a sketch", func(l *logOf) {
			two(l).op("edit_file", map[string]any{"target_file": "/repo/lib/c.go", "code_edit": "new(4)"}, "The file has been updated.")
		}, strings.Replace(left, "since;", "since, of 1 it is not known;", 1) + "src/a.go:10,20"},
		{"the same search finds nothing", func(l *logOf) {
			two(l).op("Grep", map[string]any{"pattern": "old(", "output_mode": "content"}, "No matches found")
		}, ""},
		{"another folder", func(l *logOf) {
			two(l).op("Grep", map[string]any{"pattern": "old(", "path": "docs"}, "docs/x.md:1:old(\ndocs/x.md:2:old(a)\ndocs/y.md:3:old(b)\ndocs/z.md:4:old(c)")
		}, left + "src/a.go:10,20, lib/c.go:7"},
		{"two searches in one line", func(l *logOf) {
			l.env("<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>").ok("grep -rn 'old(' src; grep -rn 'old(' lib", grep)
			change(change(l, "src/a.go", "y := old(2)", "y := new(2)"), "lib/b.go", "z := old(3)", "z := new(3)")
		}, ""},
		{"the name of the file in another folder", func(l *logOf) {
			l.env("<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>").op("Grep", map[string]any{"pattern": "typescript"}, "package.json:5:\"typescript\": 1\nweb/package.json:5:\"typescript\": 1\na/package.json:5:\"typescript\": 2\nb/package.json:5:\"typescript\": 3")
			change(change(l, "web/package.json", "typescript", "tsc"), "a/package.json", "typescript", "tsc")
		}, `- of 4 places that a search showed for "typescript" 2 were changed since; no edit seen of (lines as of then) package.json:5, b/package.json:5`},
		{"another tree", func(l *logOf) { two(l).ok("git reset --hard", "HEAD is now at 1111111 x") }, ""},
		{"the user goes on", func(l *logOf) {
			two(l).user("And the docs.").user("And the tests.").user("And the page.").user("And a release.")
		}, ""},
		{"grep in a shell", func(l *logOf) {
			l.env("<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>").ok("grep -rn 'old(' . | head -20", grep)
			change(change(l, "src/a.go", "y := old(2)", "y := new(2)"), "lib/b.go", "z := old(3)", "z := new(3)")
		}, `- of 5 places that a search showed for "grep -rn 'old(' ." 2 were changed since; no edit seen of (lines as of then) src/a.go:10,20, lib/c.go:7`},
		{"what a compiler says", func(l *logOf) { two(l.ok("go build ./...", grep)) }, left + "src/a.go:10,20, lib/c.go:7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &logOf{}
			tt.log(l)
			got := ""
			for line := range strings.Lines(summary.RenderWork(l.fold(t, state.Work{}))) {
				if strings.Contains(line, "places that a search") {
					got += strings.TrimSuffix(line, "\n")
				}
			}
			if got != tt.want {
				t.Errorf("it says\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestSearchOverSummaries: the places are counted on where a summary takes up the one before.
func TestSearchOverSummaries(t *testing.T) {
	l := (&logOf{}).op("Grep", map[string]any{"pattern": "old("}, "x/a.go:1:old(1)\nx/a.go:2:old(2)\nx/b.go:3:old(3)\nx/b.go:4:old(4)")
	for _, n := range []string{"1", "2"} {
		l.op("Edit", map[string]any{"file_path": "/repo/x/a.go", "old_string": "old(" + n + ")", "new_string": "new(" + n + ")"}, "The file has been updated.")
	}
	before := l.fold(t, state.Work{})
	next := (&logOf{}).op("Edit", map[string]any{"file_path": "/repo/x/b.go", "old_string": "old(3)", "new_string": "new(3)"}, "The file has been updated.").fold(t, before)
	if len(next.Searches) != 1 || next.Searches[0].Changed() != 3 || next.Searches[0].Left() != 1 || before.Searches[0].Changed() != 2 {
		t.Errorf("%+v, before %+v", next.Searches, before.Searches)
	}
}
