package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Tool names a tool by its directive in a script. Every client has its own
// names for them.
type Tool string

// The tools.
const (
	ToolList  Tool = "ls"
	ToolRead  Tool = "read"
	ToolGlob  Tool = "glob"
	ToolGrep  Tool = "grep"
	ToolBash  Tool = "bash"
	ToolEdit  Tool = "edit"
	ToolWrite Tool = "write"
	ToolTodo  Tool = "todo"
	ToolFetch Tool = "fetch"
	ToolTask  Tool = "task"
)

// Result is what a tool gave back.
type Result struct {
	Text   string
	Failed bool
	// Content is the text of a file without line numbers, for clients that
	// keep a second copy.
	Content string
	// Lines is the number of lines in Content.
	Lines int
}

// failf is the result of a call that went wrong.
func failf(format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), Failed: true}
}

// Run executes a call.
func (w *Workspace) Run(c Call) Result {
	switch c.Tool {
	case ToolList:
		return w.list(c.Path)
	case ToolRead:
		return w.read(c)
	case ToolGlob:
		return w.glob(c.Pattern)
	case ToolGrep:
		return w.grep(c)
	case ToolBash:
		return w.bash(c.Command)
	case ToolEdit:
		return w.edit(c)
	case ToolWrite:
		return w.write(c)
	case ToolTodo:
		return Result{Text: "The list has been updated. Go on with the item in progress."}
	case ToolFetch:
		return fetch(c.URL)
	}
	return failf("no such tool: %s", c.Tool)
}

// list shows a directory; directories end in a slash.
func (w *Workspace) list(dir string) Result {
	entries, err := os.ReadDir(w.real(dir))
	if err != nil {
		return failf("%s: no such directory", absolute(dir))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", absolute(dir))
	for _, e := range entries {
		if e.IsDir() {
			fmt.Fprintf(&b, "  %s/\n", e.Name())
			continue
		}
		info, err := e.Info()
		if err != nil {
			return failf("%v", err)
		}
		fmt.Fprintf(&b, "  %s (%d bytes)\n", e.Name(), info.Size())
	}
	return Result{Text: strings.TrimRight(b.String(), "\n")}
}

// read shows a file, or some of its lines, with line numbers.
func (w *Workspace) read(c Call) Result {
	data, err := os.ReadFile(w.real(c.Path))
	if err != nil {
		return failf("%s: file does not exist", absolute(c.Path))
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	from, to := 1, len(lines)
	if c.From > 0 {
		from, to = c.From, min(c.To, len(lines))
	}
	if from > to {
		return failf("%s has only %d lines", absolute(c.Path), len(lines))
	}
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%6d→%s\n", i, lines[i-1])
	}
	return Result{
		Text:    strings.TrimRight(b.String(), "\n"),
		Content: strings.Join(lines[from-1:to], "\n"),
		Lines:   to - from + 1,
	}
}

// glob lists the files whose path matches. A pattern without a slash is
// compared with the last element, and a leading **/ is ignored.
func (w *Workspace) glob(pattern string) Result {
	names, err := w.files(".")
	if err != nil {
		return failf("%v", err)
	}
	pattern = strings.TrimPrefix(pattern, "**/")
	var found []string
	for _, name := range names {
		target := name
		if !strings.Contains(pattern, "/") {
			target = path.Base(name)
		}
		ok, err := path.Match(pattern, target)
		if err != nil {
			return failf("glob %q: %v", pattern, err)
		}
		if ok {
			found = append(found, absolute(name))
		}
	}
	if len(found) == 0 {
		return Result{Text: "No files found"}
	}
	return Result{Text: strings.Join(found, "\n")}
}

// grep searches files line by line. Matches are "file:line:text", lines of
// context "file-line-text".
func (w *Workspace) grep(c Call) Result {
	re, err := regexp.Compile(c.Pattern)
	if err != nil {
		return failf("grep: %v", err)
	}
	names, err := w.files(c.Path)
	if err != nil {
		return failf("%s: no such file or directory", absolute(c.Path))
	}
	var out []string
	for _, name := range names {
		data, err := os.ReadFile(w.real(name))
		if err != nil {
			return failf("%v", err)
		}
		out = append(out, grepLines(re, name, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), c.Context)...)
	}
	if len(out) == 0 {
		return Result{Text: "No matches found"}
	}
	return Result{Text: strings.Join(out, "\n")}
}

func grepLines(re *regexp.Regexp, name string, lines []string, context int) []string {
	var out []string
	shown := -1 // last line that has been printed
	for i, line := range lines {
		if !re.MatchString(line) {
			continue
		}
		from := max(i-context, shown+1)
		if context > 0 && shown >= 0 && from > shown+1 {
			out = append(out, "--")
		}
		for j := from; j <= min(i+context, len(lines)-1); j++ {
			sep := "-"
			if re.MatchString(lines[j]) {
				sep = ":"
			}
			out = append(out, fmt.Sprintf("%s%s%d%s%s", name, sep, j+1, sep, lines[j]))
			shown = j
		}
	}
	return out
}

// edit replaces a piece of text that occurs exactly once.
func (w *Workspace) edit(c Call) Result {
	data, err := os.ReadFile(w.real(c.Path))
	if err != nil {
		return failf("%s: file does not exist", absolute(c.Path))
	}
	switch n := strings.Count(string(data), c.Old); {
	case n == 0:
		return failf("The text to replace was not found in %s.\nText: %s", absolute(c.Path), c.Old)
	case n > 1:
		return failf("The text to replace occurs %d times in %s. Add lines around it so that it is unique.\nText: %s", n, absolute(c.Path), c.Old)
	}
	text := strings.Replace(string(data), c.Old, c.New, 1)
	if err := os.WriteFile(w.real(c.Path), []byte(text), 0o644); err != nil {
		return failf("%v", err)
	}
	return Result{Text: fmt.Sprintf("%s has been changed. The lines around the change:\n%s", absolute(c.Path), around(text, c.New))}
}

// around shows the lines of text that contain part, and two on each side.
func around(text, part string) string {
	at := strings.Index(text, part)
	first := strings.Count(text[:at], "\n") - 2
	last := strings.Count(text[:at+len(part)], "\n") + 2
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var b strings.Builder
	for i := max(0, first); i <= min(last, len(lines)-1); i++ {
		fmt.Fprintf(&b, "%6d→%s\n", i+1, lines[i])
	}
	return strings.TrimRight(b.String(), "\n")
}

// write makes or replaces a file.
func (w *Workspace) write(c Call) Result {
	_, err := os.Stat(w.real(c.Path))
	verb := "replaced"
	if err != nil {
		verb = "created"
	}
	if err := os.MkdirAll(filepath.Dir(w.real(c.Path)), 0o755); err != nil {
		return failf("%v", err)
	}
	if err := os.WriteFile(w.real(c.Path), []byte(c.Content), 0o644); err != nil {
		return failf("%v", err)
	}
	return Result{Text: fmt.Sprintf("%s has been %s (%d lines).", absolute(c.Path), verb, strings.Count(c.Content, "\n"))}
}

// fetch answers from the documents in scripts/web; nothing goes over the
// network.
func fetch(url string) Result {
	name := strings.NewReplacer("https://", "", "/", "_").Replace(url)
	data, err := scripts.ReadFile("scripts/web/" + name + ".md")
	if err != nil {
		return failf("fetch %s: 404 Not Found", url)
	}
	return Result{Text: strings.TrimRight(string(data), "\n")}
}
